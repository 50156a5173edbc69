/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the pod manager for `mainstay debug dump`: its entries, their successors, and the start
 * limiter's queue. */

#include "agent/pods/manager/pod-manager-private.h"

#include "agent/pods/container/pod-container.h"
#include "common/dump.h"

#include <inttypes.h>

static void dump_pod_entry(const PodEntry *entry, FILE *out) {
        char delay[DUMP_DURATION_SIZE];

        if (entry->worker)
                pod_worker_dump(entry->worker, out);
        else
                dump_line(out, 1, "pod: %s, no worker", entry->description);
        if (entry->is_dirty)
                dump_line(out, 2, "step: due");
        if (entry->next)
                dump_line(out, 2, "successor: uid %s, %s", entry->next->metadata.uid,
                          entry->preflight ? "preflight under way" : "waits");
        if (entry->retry_delay_usec > 0)
                dump_line(out, 2, "preflight back-off: %s",
                          dump_format_duration(delay, entry->retry_delay_usec));
        if (entry->start_error)
                dump_line(out, 2, "last error of the successor: %s", entry->start_error);
        dump_timer(out, 2, "next step", entry->retry_timer);
}

static void dump_start_limiter(const StartLimiter *limiter, FILE *out) {
        size_t n = 0;

        for (const StartSlot *slot = limiter->first; slot; slot = slot->next)
                n++;
        dump_section(out, "Start limiter");
        dump_line(out, 1, "slots: %u of %u in use", limiter->held, limiter->limit.max);
        dump_line(out, 1, "queue: %zu containers", n);
        for (const StartSlot *slot = limiter->first; slot; slot = slot->next)
                pod_container_dump_queued(slot->userdata, out);
}

void pod_manager_dump(const PodManager *manager, FILE *out) {
        PodManagerCounts counts = pod_manager_counts(manager);

        dump_section(out, "Pod workers");
        dump_line(out, 1, "pods: %u, %u desired", counts.pods, counts.pods_desired);
        dump_line(out, 1,
                  "since start: %" PRIu64 " pods started, %" PRIu64 " containers started, %" PRIu64
                  " restarted, %" PRIu64 " start errors",
                  counts.pods_started, counts.containers_started, counts.containers_restarted,
                  counts.containers_start_errors);
        dump_line(out, 1, "synced: %s", pod_manager_is_synced(manager) ? "yes" : "no");
        if (!orphaned_pods_is_empty(manager->orphans))
                dump_line(out, 1, "orphaned pods: cleanup under way");
        if (manager->stages)
                dump_line(out, 1, "node shutdown: stage %zu of %zu", manager->stage + 1,
                          manager->n_stages);
        dump_timer(out, 1, "stage of the node shutdown ends", manager->stage_timer);
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                dump_pod_entry(entry, out);
        dump_start_limiter(&manager->context.start_limiter, out);
}
