/* SPDX-License-Identifier: Apache-2.0 */

/* Observed pods; see the header. */

#include "agent/daemonset/observed-pods.h"

#include "common/array.h"
#include "common/macros.h"

#include <errno.h>
#include <stdlib.h>

int observed_pods_add(ObservedPods *observed, const Pod *pod, const PodStatus *status,
                      bool is_orphan) {
        const PodCondition *ready = &status->conditions[CONDITION_READY];
        size_t n = observed->n;

        if (!ARRAY_RESERVE(observed->items, n, 1) ||
            !ARRAY_RESERVE(observed->peers, observed->n_peers, 1))
                return -ENOMEM;
        if (status->phase != POD_FAILED && status->phase != POD_SUCCEEDED)
                observed->peers[observed->n_peers++] = pod;
        observed->items[n] = (ObservedPod){
                .pod = pod,
                .is_syncing = status->is_syncing,
                .is_terminating = status->deletion_time > 0 || pod_is_of_api(pod),
                .is_api_pod = pod_is_of_api(pod),
                .is_ready = ready->is_true,
                .is_orphan = is_orphan,
                .waits_for_node = pod_status_waits_for_node(status),
                .phase = status->phase,
                .ready_stamp = ready->last_transition,
                .start_time = status->start_time,
        };
        observed->n++;
        return 0;
}

void observed_pods_done(ObservedPods *observed) {
        free(observed->items);
        free(observed->peers);
        *observed = (ObservedPods){ 0 };
}

bool local_pod_is_owned_by_uid(const Pod *pod, const char *uid) {
        const OwnerReference *owner = object_controlling_daemonset(&pod->metadata);

        return !pod_is_of_api(pod) && owner && streq_ptr(owner->uid, uid);
}

bool observed_pods_have_owner(const ObservedPods *observed, const char *uid) {
        for (size_t i = 0; i < observed->n; i++)
                if (local_pod_is_owned_by_uid(observed->items[i].pod, uid))
                        return true;
        return false;
}
