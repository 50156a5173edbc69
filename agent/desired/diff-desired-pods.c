/* SPDX-License-Identifier: Apache-2.0 */
/* The diff of desired and actual pods; see the header for its rules. */

#include "agent/desired/diff-desired-pods.h"

#include "agent/model/edit-plan.h"
#include "common/cleanup.h"

const char *const pod_worker_action_names[N_POD_WORKER_ACTIONS] = {
        [POD_WORKER_ACTION_START] = "start", [POD_WORKER_ACTION_EDIT] = "edit",
        [POD_WORKER_ACTION_KEEP] = "keep",   [POD_WORKER_ACTION_DROP_SUCCESSOR] = "drop successor",
        [POD_WORKER_ACTION_STOP] = "stop",
};

void pod_worker_actions_done(PodWorkerActions *actions) {
        free(actions->items);
        *actions = (PodWorkerActions){ 0 };
}

/* Each actual pod yields at most two actions, each desired one a single action. */
static int allocate_actions(const DesiredPods *desired, const ActualPods *actual,
                            PodWorkerActions *actions) {
        actions->items = calloc(2 * actual->n + desired->pods.n + 1, sizeof(*actions->items));
        return actions->items ? 0 : -ENOMEM;
}

static const Pod *resolved_pod(const DesiredPod *desired) {
        return desired->resolved ? desired->resolved : desired->pod;
}

/* 1: the running pod needs no edit; 0; -ENOMEM. */
static int needs_no_edit(const Pod *running, const Pod *desired) {
        cleanup_with(edit_plan_done) EditPlan plan = { 0 };
        int r = running == desired ? 1 : edit_plan_make(running, desired, &plan);

        return r != 0 ? r : plan.effect == EDIT_NONE;
}

static void add_desired_action(PodWorkerActions *actions, PodWorkerActionKind kind,
                               const DesiredPod *desired) {
        actions->items[actions->n++] = (PodWorkerAction){
                .kind = kind,
                .metadata = &desired->pod->metadata,
                .source = &desired->source,
                .pod = resolved_pod(desired),
        };
}

static int diff_one_pod(const DesiredPod *desired, const ActualPod *actual,
                        PodWorkerActions *actions) {
        bool is_running = actual->pod && !actual->is_terminating;
        int r;

        if (is_running) {
                r = needs_no_edit(actual->pod, resolved_pod(desired));
                if (r < 0)
                        return r;
                if (r > 0 &&
                    (actual->successor || !pod_sources_equal(actual->source, &desired->source)))
                        add_desired_action(actions, POD_WORKER_ACTION_KEEP, desired);
                if (r > 0)
                        return 0;
        }
        if (actual->successor && pod_sources_equal(actual->successor_source, &desired->source)) {
                r = needs_no_edit(actual->successor, resolved_pod(desired));
                if (r != 0)
                        return r < 0 ? r : 0; /* it is about to start */
        }
        add_desired_action(actions, is_running ? POD_WORKER_ACTION_EDIT : POD_WORKER_ACTION_START,
                           desired);
        return 0;
}

static void drop_undesired_successor(const ActualPod *actual, PodWorkerActions *actions) {
        if (actual->successor)
                actions->items[actions->n++] = (PodWorkerAction){
                        .kind = POD_WORKER_ACTION_DROP_SUCCESSOR,
                        .metadata = &actual->successor->metadata,
                };
}

static void stop_undesired_pods(const DesiredPods *desired, const ActualPods *actual,
                                PodWorkerActions *actions) {
        for (size_t i = 0; i < actual->n; i++) {
                const ActualPod *one = &actual->items[i];
                const ObjectMeta *metadata = actual_pod_metadata(one);

                if (!one->pod || one->is_terminating || !one->stop_reason ||
                    desired_pods_find(desired, metadata->namespace, metadata->name))
                        continue;
                actions->items[actions->n++] = (PodWorkerAction){
                        .kind = POD_WORKER_ACTION_STOP,
                        .metadata = metadata,
                        .reason = one->stop_reason,
                };
        }
}

int diff_desired_pods(const DesiredPods *desired, const ActualPods *actual, PodWorkerActions *ret) {
        cleanup_with(pod_worker_actions_done) PodWorkerActions actions = { 0 };
        cleanup_free bool *is_there = calloc(desired->pods.n + 1, sizeof(*is_there));
        int r = is_there ? allocate_actions(desired, actual, &actions) : -ENOMEM;

        if (r < 0)
                return r;
        for (size_t i = 0; i < actual->n; i++) {
                const ObjectMeta *metadata = actual_pod_metadata(&actual->items[i]);
                const DesiredPod *one =
                        desired_pods_find(desired, metadata->namespace, metadata->name);

                if (!one) {
                        if (!desired->is_incomplete)
                                drop_undesired_successor(&actual->items[i], &actions);
                        continue;
                }
                is_there[one - desired->pods.items] = true;
                r = diff_one_pod(one, &actual->items[i], &actions);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < desired->pods.n; i++)
                if (!is_there[i])
                        add_desired_action(&actions, POD_WORKER_ACTION_START,
                                           &desired->pods.items[i]);
        if (!desired->is_incomplete)
                stop_undesired_pods(desired, actual, &actions);
        *ret = actions;
        actions = (PodWorkerActions){ 0 };
        return 0;
}
