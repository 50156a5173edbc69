/* SPDX-License-Identifier: Apache-2.0 */

/* Pods that a set has left: wanted for their own sake, until a set takes them or a person ends
 * them. Their records name no file. */

#include "agent/daemonset/controller-private.h"
#include "common/cleanup.h"

#include <stdlib.h>

int daemonset_controller_add_orphan(DaemonSetController *controller, const Pod *pod) {
        cleanup_with(pod_freep) Pod *copy = NULL;
        Pod **longer;
        int r = pod_copy(pod, &copy);

        if (r >= 0)
                r = daemonset_set_pod_owner(NULL, copy);
        if (r < 0)
                return r;
        longer = reallocarray(controller->orphans, controller->n_orphans + 1, sizeof(*longer));
        if (!longer)
                return -ENOMEM;
        controller->orphans = longer;
        longer[controller->n_orphans++] = TAKE_PTR(copy);
        return 0;
}

static void drop_orphan_at(DaemonSetController *controller, size_t i) {
        pod_free(controller->orphans[i]);
        controller->orphans[i] = controller->orphans[--controller->n_orphans];
}

bool daemonset_controller_has_orphan(const DaemonSetController *controller, const Pod *pod) {
        for (size_t i = 0; i < controller->n_orphans; i++)
                if (streq(controller->orphans[i]->metadata.uid, pod->metadata.uid))
                        return true;
        return false;
}

void daemonset_controller_drop_orphan(DaemonSetController *controller, const Pod *pod) {
        for (size_t i = 0; i < controller->n_orphans; i++)
                if (streq(controller->orphans[i]->metadata.uid, pod->metadata.uid)) {
                        drop_orphan_at(controller, i);
                        return;
                }
}

void daemonset_controller_orphan_deleted(DaemonSetController *controller, const char *namespace,
                                         const char *name) {
        for (size_t i = 0; i < controller->n_orphans; i++) {
                const ObjectMeta *metadata = &controller->orphans[i]->metadata;

                if (streq(metadata->name, name) && streq(metadata->namespace, namespace)) {
                        drop_orphan_at(controller, i);
                        return;
                }
        }
}

void daemonset_controller_keep_orphans(DaemonSetController *controller) {
        static const PodSource source = { .kind = POD_SOURCE_ORPHAN };

        for (size_t i = 0; i < controller->n_orphans; i++)
                if (desired_pods_add(controller->desired, &source, controller->orphans[i]) < 0)
                        controller->has_failed = true;
}

int daemonset_controller_claim_record(const PodSource *source, const Pod *pod, void *userdata) {
        DaemonSetController *controller = userdata;
        const OwnerReference *owner = object_controller(&pod->metadata);
        const DaemonSetState *state =
                owner ? daemonset_controller_find_uid(controller, owner->uid) : NULL;

        if (source->kind == POD_SOURCE_ORPHAN || (state && state->history.is_orphaning)) {
                int r = daemonset_controller_add_orphan(controller, pod);

                return r < 0 ? r : 1;
        }
        return state && state->set;
}

/* That the pods are to stay is on the disk before the set's file may go. */
int daemonset_controller_orphan_pods(DaemonSetController *controller, const char *namespace,
                                     const char *name, Error *reterr) {
        DaemonSetState *state = daemonset_controller_find(controller, namespace, name);
        int r;

        if (!state)
                return error_setf(reterr, ENOENT, "daemonsets.apps \"%s\" not found", name);
        r = daemonset_controller_observe_pods(controller);
        if (r < 0)
                return r;
        state->history.is_orphaning = true;
        r = daemonset_state_store(controller, state, reterr);
        state->history.is_orphaning = r >= 0;
        for (size_t i = 0; r >= 0 && i < controller->n_observed; i++) {
                const ObservedPod *observed = &controller->observed[i];
                const OwnerReference *owner = object_controller(&observed->pod->metadata);

                if (!observed->is_terminating && owner && streq(owner->uid, state->uid))
                        r = daemonset_controller_add_orphan(controller, observed->pod);
        }
        daemonset_controller_clear_observed(controller);
        return r;
}

void daemonset_controller_readopt_pods(DaemonSetController *controller, const char *namespace,
                                       const char *name) {
        DaemonSetState *state = daemonset_controller_find(controller, namespace, name);

        if (!state)
                return;
        state->history.is_orphaning = false;
        daemonset_state_store_or_log(controller, state);
        daemonset_controller_schedule_sync(controller);
}
