/* SPDX-License-Identifier: Apache-2.0 */

/* Requests of users for DaemonSets: lists, rollout undo and restart, deletion with orphan pods. */

#include "agent/daemonset/checkpoint.h"
#include "agent/daemonset/controller-private.h"
#include "agent/daemonset/rules/history.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <errno.h>
#include <stdlib.h>

static DaemonSetState *find_daemonset_or_error(DaemonSetController *controller,
                                               const char *namespace, const char *name,
                                               Error *reterr) {
        DaemonSetState *state = find_desired_daemonset(controller, namespace, name);

        if (!state)
                (void) error_setf(reterr, ENOENT, "daemonsets.apps \"%s\" not found", name);
        return state;
}

/* ---- lists ---- */

static int compare_daemonset_names(const void *a, const void *b) {
        const ObjectMeta *x = &daemonset_state_set(*(DaemonSetState *const *) a)->metadata;
        const ObjectMeta *y = &daemonset_state_set(*(DaemonSetState *const *) b)->metadata;
        int r = strcmp(x->namespace, y->namespace);

        return r != 0 ? r : strcmp(x->name, y->name);
}

/* The desired sets by namespace and name; the caller frees the array. NULL: out of memory. */
static DaemonSetState **sort_daemonsets(DaemonSetController *controller, size_t *ret_n) {
        DaemonSetState **sorted = calloc(controller->n_sets + 1, sizeof(DaemonSetState *));
        size_t n = 0;

        if (!sorted)
                return NULL;
        for (size_t i = 0; i < controller->n_sets; i++)
                if (daemonset_state_is_desired(controller->sets[i], controller->pass.generation))
                        sorted[n++] = controller->sets[i];
        if (n > 1)
                qsort(sorted, n, sizeof(DaemonSetState *), compare_daemonset_names);
        *ret_n = n;
        return sorted;
}

static int update_status_counts(DaemonSetController *controller) {
        int r = sync_pass_observe_pods(&controller->pass);

        for (size_t i = 0; r >= 0 && i < controller->n_sets; i++)
                r = daemonset_state_update_counts(&controller->pass, controller->sets[i]);
        observed_pods_done(&controller->pass.observed);
        return r;
}

int daemonset_controller_each(DaemonSetController *controller,
                              int (*each)(const char *key, const char *json, void *context),
                              void *context) {
        cleanup_free DaemonSetState **sorted = NULL;
        size_t n;
        int r = 0;

        if (update_status_counts(controller) < 0)
                return -ENOMEM;
        sorted = sort_daemonsets(controller, &n);
        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n && r >= 0; i++) {
                const ObjectMeta *metadata = &daemonset_state_set(sorted[i])->metadata;
                cleanup_free char *key = path_join(metadata->namespace, metadata->name);
                cleanup_free char *json = daemonset_state_to_json(sorted[i]);

                r = key && json ? each(key, json, context) : -ENOMEM;
        }
        return r;
}

int daemonset_controller_each_revision(DaemonSetController *controller,
                                       int (*each)(const char *key, const char *json,
                                                   void *context),
                                       void *context) {
        cleanup_free DaemonSetState **sorted = NULL;
        size_t n;
        int r = 0;

        sorted = sort_daemonsets(controller, &n);
        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n && r >= 0; i++)
                r = daemonset_state_each_revision(sorted[i], each, context);
        return r;
}

const PodSource *daemonset_controller_find_source(DaemonSetController *controller,
                                                  const char *namespace, const char *name,
                                                  Error *reterr) {
        DaemonSetState *state = find_daemonset_or_error(controller, namespace, name, reterr);

        return state ? daemonset_state_source(state) : NULL;
}

/* ---- rollouts ---- */

static int store_and_schedule_sync(DaemonSetController *controller, const DaemonSetState *state,
                                   Error *reterr) {
        int r = daemonset_checkpoint_store(controller->config.state_dir, daemonset_state_uid(state),
                                           daemonset_state_history(state), reterr);

        daemonset_controller_schedule_sync(controller);
        return r;
}

int daemonset_controller_undo_rollout(DaemonSetController *controller, const char *namespace,
                                      const char *name, int64_t revision, Error *reterr) {
        DaemonSetState *state = find_daemonset_or_error(controller, namespace, name, reterr);
        int r;

        if (!state)
                return -ENOENT;
        r = daemonset_state_undo_rollout(state, revision, steady_now_usec(controller->config.clock),
                                         reterr);
        return r != 0 ? r : store_and_schedule_sync(controller, state, reterr);
}

int daemonset_controller_restart_rollout(DaemonSetController *controller, const char *namespace,
                                         const char *name, Error *reterr) {
        DaemonSetState *state = find_daemonset_or_error(controller, namespace, name, reterr);
        int r;

        if (!state)
                return -ENOENT;
        r = daemonset_state_restart_rollout(state, steady_now_usec(controller->config.clock));
        return r < 0 ? r : store_and_schedule_sync(controller, state, reterr);
}

/* ---- orphan pods ---- */

static int add_orphans_of(DaemonSetController *controller, const DaemonSetState *state) {
        const ObservedPods *observed = &controller->pass.observed;

        for (size_t i = 0; i < observed->n; i++) {
                int r;

                if (observed->items[i].is_terminating ||
                    !local_pod_is_owned_by_uid(observed->items[i].pod, daemonset_state_uid(state)))
                        continue;
                r = daemonset_controller_add_orphan(controller, observed->items[i].pod);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* The decision to keep the pods is written to disk before the set's file may be removed. */
int daemonset_controller_orphan_pods(DaemonSetController *controller, const char *namespace,
                                     const char *name, Error *reterr) {
        DaemonSetState *state = find_daemonset_or_error(controller, namespace, name, reterr);
        int r;

        if (!state)
                return -ENOENT;
        r = sync_pass_observe_pods(&controller->pass);
        if (r < 0)
                return r;
        r = daemonset_state_store_orphaning(state, controller->config.state_dir, reterr);
        if (r >= 0)
                r = add_orphans_of(controller, state);
        observed_pods_done(&controller->pass.observed);
        return r;
}

void daemonset_controller_readopt_pods(DaemonSetController *controller, const char *namespace,
                                       const char *name) {
        DaemonSetState *state = find_desired_daemonset(controller, namespace, name);

        if (!state)
                return;
        daemonset_state_clear_orphaning(state, controller->config.state_dir);
        daemonset_controller_schedule_sync(controller);
}

void daemonset_controller_orphan_deleted(DaemonSetController *controller, const char *namespace,
                                         const char *name) {
        orphan_pods_drop_named(controller->pass.orphans, namespace, name);
}
