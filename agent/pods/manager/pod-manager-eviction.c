/* SPDX-License-Identifier: Apache-2.0 */
/* The pods' part of node-pressure eviction: which pods may be evicted, which were evicted, and
 * which start again when the pressure is over. eviction/ ranks and chooses them.
 *
 * Evicted static pods start again, because no controller replaces them. Pods of an API server do
 * not: their controllers replace them. */

#include "agent/model/object-identity.h"
#include "agent/pods/manager/pod-manager-private.h"
#include "common/log.h"

#include <errno.h>
#include <stdlib.h>

static bool is_evictable_pod(const PodWorker *worker) {
        return worker && pod_worker_is_active(worker) &&
               !pod_is_critical(&pod_worker_pod(worker)->spec);
}

static void free_eviction_candidates(EvictionCandidate *candidates, size_t n) {
        for (size_t i = 0; i < n; i++)
                eviction_candidate_done(&candidates[i]);
        free(candidates);
}

int pod_manager_list_eviction_candidates(PodManager *manager, EvictionCandidate **ret,
                                         size_t *ret_n) {
        EvictionCandidate *candidates;
        size_t n = 1;

        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                n++;
        candidates = calloc(n, sizeof(*candidates));
        if (!candidates)
                return -ENOMEM;
        n = 0;
        for (const PodEntry *entry = manager->entries; !manager->stages && entry;
             entry = entry->next_entry) {
                int r = is_evictable_pod(entry->worker)
                                ? pod_worker_eviction_candidate(entry->worker, &candidates[n++])
                                : 0;

                if (r < 0) {
                        free_eviction_candidates(candidates, n);
                        return r;
                }
        }
        *ret = candidates;
        *ret_n = n;
        return 0;
}

static PodWorker *find_worker_by_uid(const PodManager *manager, const char *uid) {
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                if (entry->worker && object_has_uid(&pod_worker_pod(entry->worker)->metadata, uid))
                        return entry->worker;
        return NULL;
}

bool pod_manager_evict_pod(PodManager *manager, const char *uid, NodeCondition condition,
                           const char *message, int64_t max_grace_seconds,
                           uint64_t *ret_grace_usec) {
        PodWorker *worker = find_worker_by_uid(manager, uid);

        return worker &&
               pod_worker_evict(worker, condition, message, max_grace_seconds, ret_grace_usec);
}

bool pod_manager_is_stopping_failed(const PodManager *manager, const char *uid) {
        const PodWorker *worker = find_worker_by_uid(manager, uid);

        return worker && pod_worker_is_stopping_failed(worker);
}

bool pod_manager_has_active_pods(const PodManager *manager) {
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                if (entry->worker && pod_worker_is_active(entry->worker))
                        return true;
        return false;
}

uint64_t pod_manager_last_evicted_at(const PodManager *manager, NodeCondition condition) {
        uint64_t latest = 0;

        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                NodeCondition of = condition;
                uint64_t evicted_at = entry->worker ? pod_worker_evicted_at(entry->worker, &of) : 0;

                if (evicted_at > 0 && of == condition)
                        latest = MAX(latest, evicted_at);
        }
        return latest;
}

void pod_manager_readmit_evicted(PodManager *manager) {
        unsigned set = manager->context.conditions ? manager->context.conditions->set : 0;

        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                PodWorker *worker = entry->worker;
                NodeCondition condition;

                if (!worker || !pod_worker_is_desired(worker) ||
                    pod_worker_evicted_at(worker, &condition) == 0 ||
                    pod_is_of_api(pod_worker_pod(worker)) ||
                    (set & NODE_CONDITION_BIT(condition)) ||
                    pod_worker_pod(worker)->spec.restart_policy == RESTART_POLICY_NEVER)
                        continue;
                log_info("Pod '%s' starts again: the node no longer has %s", entry->description,
                         node_conditions[condition].name);
                pod_worker_delete(worker, -1, "it was evicted, and starts again");
        }
}
