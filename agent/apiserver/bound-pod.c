/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the spec of an API pod, or its rejection. Adoption itself is in daemonset-pod-adoption.c.
 */

#include "agent/apiserver/bound-pod.h"

#include "agent/model/edit-plan.h"
#include "agent/model/object-identity.h"
#include "common/cleanup.h"

void bound_pod_clear(BoundPod *bound) {
        bound->preflight = preflight_free(bound->preflight);
        bound->owned = pod_free(bound->owned);
        bound->desired = NULL;
        bound->is_adopted_current = false;
        bound->is_of_daemonset = false;
        bound->is_outdated = false;
        bound->claims = CLAIMS_UNREAD;
        bound->rejection = pod_status_unref(bound->rejection);
}

void bound_pod_done(BoundPod *bound) {
        bound_pod_clear(bound);
        bound->adopted = pod_free(bound->adopted);
}

int bound_pod_restore(BoundPod *bound, const Pod *desired) {
        int r;

        bound_pod_done(bound);
        r = pod_copy(desired, &bound->owned);
        bound->desired = bound->owned;
        return r;
}

int bound_pod_update_take(BoundPod *bound, Pod **desired) {
        cleanup_with(edit_plan_done) EditPlan plan = { 0 };
        bool is_same = bound->desired &&
                       objects_share_uid(&bound->desired->metadata, &(*desired)->metadata);
        int r = is_same ? edit_plan_make(bound->desired, *desired, &plan) : 0;

        if (r < 0 || (is_same && plan.effect == EDIT_NONE))
                return r;
        bound_pod_clear(bound);
        bound->desired = bound->owned = TAKE_PTR(*desired);
        return 1;
}

void bound_pod_borrow(BoundPod *bound, const Pod *running) {
        cleanup_with(edit_plan_done) EditPlan plan = { 0 };

        if (!bound->owned || !objects_are_same(&bound->owned->metadata, &running->metadata) ||
            edit_plan_make(running, bound->owned, &plan) < 0 || plan.effect != EDIT_NONE)
                return;
        bound->preflight = preflight_free(bound->preflight);
        bound->owned = pod_free(bound->owned);
        bound->desired = running;
}

int bound_pod_return(BoundPod *bound, const Pod *running) {
        int r;

        if (bound->desired != running)
                return 0;
        bound->desired = NULL;
        r = pod_copy(running, &bound->owned);
        bound->desired = bound->owned;
        return r;
}

int bound_pod_reject(BoundPod *bound, const char *reason, const char *message) {
        PodStatus *rejection;

        if (bound->rejection && streq(bound->rejection->reason, reason) &&
            streq(bound->rejection->message, message))
                return 0;
        bound->rejection = pod_status_unref(bound->rejection);
        rejection = calloc(1, sizeof(*rejection));
        if (!rejection)
                return -ENOMEM;
        *rejection = (PodStatus){ .n_refs = 1,
                                  .phase = POD_FAILED,
                                  .is_rejected = true,
                                  .reason = strdup(reason),
                                  .message = strdup(message) };
        bound->rejection = rejection;
        if (rejection->reason && rejection->message)
                return 0;
        bound->rejection = pod_status_unref(bound->rejection);
        return -ENOMEM;
}
