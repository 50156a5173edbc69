/* SPDX-License-Identifier: Apache-2.0 */
/* Preemption as far as it is about pods that are there: which may be stopped for a critical one,
 * and which are being stopped. Choosing among them is pod-preemption.c. */

#include "agent/pods/manager/pod-manager-private.h"
#include "agent/pods/pod/pod-preemption.h"
#include "common/cleanup.h"
#include "common/log.h"

#include <errno.h>
#include <stdlib.h>

/* The workers that 'pod' may preempt, and next to each the candidate, in arrays that are large
 * enough. Their number. */
static size_t list_preemptible(const PodManager *manager, const Pod *pod, PodWorker **workers,
                               PreemptionCandidate *candidates) {
        size_t n = 0;

        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                const Pod *other = entry->worker ? pod_worker_pod(entry->worker) : NULL;

                if (!other || other == pod || !pod_worker_is_desired(entry->worker) ||
                    !pod_worker_uses_resources(entry->worker) || !pod_may_preempt(pod, other))
                        continue;
                candidates[n] =
                        (PreemptionCandidate){ .qos = pod_qos_class(&other->spec),
                                               .requests = node_usage_of_pod(&other->spec) };
                workers[n++] = entry->worker;
        }
        return n;
}

int pod_manager_preempt(const Pod *pod, const NodeUsage *missing, NodeUsage *ret_unmet,
                        void *userdata) {
        PodManager *manager = userdata;
        cleanup_free PreemptionCandidate *candidates = NULL;
        cleanup_free PodWorker **workers = NULL;
        size_t n = 1;

        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                n++;
        candidates = calloc(n, sizeof(*candidates));
        workers = calloc(n, sizeof(PodWorker *));
        if (!candidates || !workers)
                return -ENOMEM;
        n = list_preemptible(manager, pod, workers, candidates);
        if (!choose_pods_to_preempt(candidates, n, missing, ret_unmet))
                return -ENOSPC;
        for (size_t i = 0; i < n; i++) {
                const ObjectMeta *victim = &pod_worker_pod(workers[i])->metadata;

                if (!candidates[i].is_chosen)
                        continue;
                log_info("Pod '%s/%s' is critical and does not fit: preempting pod '%s/%s'",
                         pod->metadata.namespace, pod->metadata.name, victim->namespace,
                         victim->name);
                pod_worker_preempt(workers[i]);
                manager->n_preemptions[node_usage_first(missing)]++;
        }
        return 0;
}

bool pod_manager_is_preempting(void *userdata) {
        const PodManager *manager = userdata;

        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                if (entry->worker && pod_worker_is_stopping_preempted(entry->worker))
                        return true;
        return false;
}
