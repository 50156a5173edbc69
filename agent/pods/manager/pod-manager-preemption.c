/* SPDX-License-Identifier: Apache-2.0 */
/* The part of preemption that concerns existing pods: which of them may be stopped for a critical
 * pod, or for the devices that a pod of higher trust needs, and which are being stopped.
 * pod-preemption.c chooses among them by the amounts that they request. */

#include "agent/model/object-identity.h"
#include "agent/model/qos.h"
#include "agent/pods/manager/pod-manager-private.h"
#include "agent/pods/pod/pod-preemption.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/text.h"

#include <errno.h>
#include <stdlib.h>

/* The workers that 'pod' may preempt, and the corresponding candidates, in arrays that are large
 * enough. Returns their number. */
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

/* ---- devices ---- */

/* A pod that needs devices that other pods have. */
typedef struct DeviceClaim {
        PodManager *manager;
        const Pod *pod;
        const PodSource *source;
} DeviceClaim;

/* Pods of lower trust release their devices if they must; other pods only if they terminate anyway.
 */
static bool will_release(const char *uid, void *userdata) {
        const DeviceClaim *claim = userdata;

        for (const PodEntry *entry = claim->manager->entries; entry; entry = entry->next_entry)
                if (entry->worker && object_has_uid(&pod_worker_pod(entry->worker)->metadata, uid))
                        return pod_source_outranks(claim->source, &entry->source)
                                       ? entry->gives_way
                                       : pod_worker_is_terminating(entry->worker);
        return false;
}

static bool is_enough(DeviceClaim *claim) {
        return device_manager_has_enough(claim->manager->context.devices, claim->pod, will_release,
                                         claim);
}

/* Pods that are already terminating are the last to be spared, because taking their devices stops
 * no other pod. */
static unsigned rank_of_holder(const PodEntry *entry) {
        return pod_worker_is_terminating(entry->worker)
                       ? N_QOS_CLASSES
                       : pod_qos_class(&pod_worker_pod(entry->worker)->spec);
}

/* A pod is spared if the devices of the others suffice. */
static void spare_holders(DeviceClaim *claim, unsigned rank) {
        for (PodEntry *entry = claim->manager->entries; entry; entry = entry->next_entry) {
                if (!entry->gives_way || rank_of_holder(entry) != rank)
                        continue;
                entry->gives_way = false;
                entry->gives_way = !is_enough(claim);
        }
}

static void displace_holder(const DeviceClaim *claim, const PodEntry *entry) {
        cleanup_free char *message = text_format(
                "Preempted in order to admit pod %s/%s, which needs a device that this pod has",
                claim->pod->metadata.namespace, claim->pod->metadata.name);

        pod_worker_displace(entry->worker, PREEMPTION_REASON,
                            message ? message : PREEMPTION_MESSAGE);
}

bool pod_manager_displace_device_holders(const Pod *pod, void *userdata) {
        PodManager *manager = userdata;
        DeviceClaim claim = { manager, pod, pod_manager_find_source(manager, pod) };

        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                entry->gives_way =
                        claim.source && entry->worker &&
                        pod_has_extended_resources(&pod_worker_pod(entry->worker)->spec) &&
                        pod_source_outranks(claim.source, &entry->source);
        if (!claim.source || !is_enough(&claim))
                return false;
        for (unsigned rank = QOS_GUARANTEED; rank <= N_QOS_CLASSES; rank++)
                spare_holders(&claim, rank);
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                if (entry->gives_way)
                        displace_holder(&claim, entry);
        return true;
}
