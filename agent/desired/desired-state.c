/* SPDX-License-Identifier: Apache-2.0 */
/* Recomputes the desired state on request, and applies the difference to the pods. */

#include "agent/desired/desired-state.h"

#include "agent/desired/collect-desired-pods.h"
#include "agent/desired/diff-desired-pods.h"
#include "agent/desired/fetched-manifests.h"
#include "agent/desired/manifest-problems.h"
#include "agent/desired/pod-rollouts.h"
#include "agent/desired/stop-reason.h"
#include "agent/model/pod-order.h"
#include "agent/pods/pod/pod-classes.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/log.h"

#define RETRY_USEC      (5 * USEC_PER_SEC)
#define DRAIN_POLL_USEC (50 * USEC_PER_MSEC)

enum {
        ACTION_COUNTS_SIZE = 128,
};

struct DesiredState {
        DesiredStateConfig config;
        ManifestDirectory *manifests;
        FetchedManifests *fetched;
        PodRollouts *rollouts;
        ManifestProblems *problems;
        sd_event_source *recompute_source;
        sd_event_source *drain_timer;   /* while draining */
        SystemdClient *drained_systemd; /* its systemd client; NULL: none */
        sd_event_source *retry_timer;   /* after an action or a recomputation that failed */
        unsigned data_generation;       /* generation of the objects when pods were last notified */
        bool has_scanned;
        bool is_computed;
        bool is_suspended;
        /* Results of the last recomputation, for the log and for dumps. */
        uint64_t computed_at; /* boot time */
        size_t n_desired;
        size_t n_actions[N_POD_WORKER_ACTIONS];
};

/* ---- current state ---- */

static int resolve_desired_classes(const DesiredState *state, DesiredPod *desired,
                                   const Pod *running) {
        Pod resolved;

        if (!borrow_class_values(state->config.objects, running, desired->pod, &resolved))
                return 0;
        desired->resolved = malloc(sizeof(resolved));
        if (!desired->resolved)
                return -ENOMEM;
        *desired->resolved = resolved;
        return 0;
}

static int compare_actual_pods(const void *a, const void *b) {
        const ObjectMeta *x = actual_pod_metadata(a), *y = actual_pod_metadata(b);
        int r = strcmp(x->namespace, y->namespace);

        return r != 0 ? r : strcmp(x->name, y->name);
}

/* Both lists are sorted by name. */
static int resolve_all_classes(const DesiredState *state, DesiredPods *desired,
                               ActualPods *actual) {
        size_t j = 0;

        if (actual->n > 0)
                qsort(actual->items, actual->n, sizeof(*actual->items), compare_actual_pods);
        for (size_t i = 0; i < desired->pods.n; i++) {
                DesiredPod *one = &desired->pods.items[i];
                const ActualPod wanted = { .pod = one->pod };
                int r = -1;

                while (j < actual->n && (r = compare_actual_pods(&actual->items[j], &wanted)) < 0)
                        j++;
                if (resolve_desired_classes(
                            state, one, j < actual->n && r == 0 ? actual->items[j].pod : NULL) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static void explain_undesired_pods(const DesiredState *state, const DesiredPods *desired,
                                   ActualPods *actual) {
        for (size_t i = 0; i < actual->n; i++) {
                ActualPod *one = &actual->items[i];
                const ObjectMeta *metadata = actual_pod_metadata(one);

                if (one->pod && !one->is_terminating &&
                    !desired_pods_find(desired, metadata->namespace, metadata->name))
                        one->stop_reason = find_stop_reason(
                                &state->config.daemonsets, &state->config.apiserver,
                                state->manifests, one->source, one->pod);
        }
}

/* ---- consequences ---- */

/* The timer is needed because nothing else would request another recomputation. */
static void schedule_retry(DesiredState *state) {
        (void) event_timer_arm(state->retry_timer, RETRY_USEC);
}

static void apply_pod_worker_action(DesiredState *state, const PodWorkerAction *action) {
        PodManager *pods = state->config.pod_manager;
        cleanup_error Error error = ERROR_NULL;
        int r = 0;

        switch (action->kind) {
        case POD_WORKER_ACTION_START:
        case POD_WORKER_ACTION_EDIT:
                r = pod_manager_start_or_edit(pods, action->source, action->pod);
                break;
        case POD_WORKER_ACTION_KEEP:
                r = pod_manager_keep_pod(pods, action->source, action->metadata, &error);
                break;
        case POD_WORKER_ACTION_DROP_SUCCESSOR:
                pod_manager_drop_successor(pods, action->metadata);
                break;
        case POD_WORKER_ACTION_STOP:
                pod_manager_stop_pod(pods, action->metadata, action->reason);
                break;
        case N_POD_WORKER_ACTIONS:
                break;
        }
        if (r >= 0)
                return;
        log_error("Cannot %s pod %s/%s of %s: %s; retrying in %us",
                  pod_worker_action_names[action->kind], action->metadata->namespace,
                  action->metadata->name, pod_source_describe(action->source),
                  error_message(&error, r), (unsigned) (RETRY_USEC / USEC_PER_SEC));
        schedule_retry(state);
}

/* "2 start, 0 edit, …" */
static const char *format_action_counts(const DesiredState *state,
                                        char buffer[ACTION_COUNTS_SIZE]) {
        size_t length = 0;

        buffer[0] = '\0';
        for (size_t i = 0; i < N_POD_WORKER_ACTIONS && length < ACTION_COUNTS_SIZE; i++)
                length += (size_t) snprintf(buffer + length, ACTION_COUNTS_SIZE - length,
                                            "%s%zu %s", i > 0 ? ", " : "", state->n_actions[i],
                                            pod_worker_action_names[i]);
        return buffer;
}

static void record_recomputation(DesiredState *state, const DesiredPods *desired,
                                 const PodWorkerActions *actions) {
        char counts[ACTION_COUNTS_SIZE];

        state->computed_at = now_boottime_usec();
        state->n_desired = desired->pods.n;
        memset(state->n_actions, 0, sizeof(state->n_actions));
        for (size_t i = 0; i < actions->n; i++)
                state->n_actions[actions->items[i].kind]++;
        log_debug("Recomputed the desired pods: %zu desired%s; actions: %s", desired->pods.n,
                  desired->is_incomplete ? " (incomplete)" : "",
                  format_action_counts(state, counts));
}

static int apply_desired_pods(DesiredState *state, const DesiredPods *desired,
                              const ActualPods *actual) {
        cleanup_with(pod_worker_actions_done) PodWorkerActions actions = { 0 };
        int r = diff_desired_pods(desired, actual, &actions);

        if (r < 0)
                return r;
        record_recomputation(state, desired, &actions);
        for (size_t i = 0; i < actions.n; i++)
                apply_pod_worker_action(state, &actions.items[i]);
        if (!desired->is_incomplete)
                pod_manager_remove_leftovers(state->config.pod_manager);
        return 0;
}

static void notify_changed_objects(DesiredState *state) {
        unsigned generation = manifest_directory_data_generation(state->manifests);

        if (generation != state->data_generation)
                pod_manager_on_objects_changed(state->config.pod_manager, /* concerns= */ NULL,
                                               NULL);
        state->data_generation = generation;
}

/* The collected pods borrow from the sources, so nothing is kept between passes. */
static int follow_rollouts(DesiredState *state, DesiredPods *desired, const ActualPods *actual) {
        bool holds = pod_manager_is_shutting_down(state->config.pod_manager);

        if (!holds)
                index_rollout_judge(fetched_manifests_rollout(state->fetched), desired, actual);
        return pod_rollouts_apply(state->rollouts, desired, actual, holds);
}

static int update_desired_pods(DesiredState *state) {
        cleanup_with(desired_pods_done) DesiredPods desired = { 0 };
        cleanup_with(actual_pods_done) ActualPods actual = { 0 };
        int r = collect_desired_pods(state->manifests, &state->config.daemonsets,
                                     &state->config.apiserver, &desired);

        if (r < 0) {
                log_error("Cannot collect all desired pods: %s; no pod is stopped, retrying in %us",
                          strerror(-r), (unsigned) (RETRY_USEC / USEC_PER_SEC));
                schedule_retry(state);
        }
        r = pod_manager_list(state->config.pod_manager, &actual);
        if (r < 0)
                return r;
        r = follow_rollouts(state, &desired, &actual);
        if (r < 0)
                return r;
        r = resolve_all_classes(state, &desired, &actual);
        if (r < 0)
                return r;
        explain_undesired_pods(state, &desired, &actual);
        return apply_desired_pods(state, &desired, &actual);
}

static int on_recompute_due(sd_event_source *source, void *userdata) {
        DesiredState *state = userdata;
        const DaemonSetPodSource *daemonsets = &state->config.daemonsets;
        int r;

        if (state->is_suspended)
                return 0;
        eviction_manager_synchronize(state->config.eviction_manager);
        pod_manager_readmit_evicted(state->config.pod_manager);
        r = update_desired_pods(state);
        if (r < 0) {
                log_error("Cannot compute the desired pods: %s; no pod is started or stopped, "
                          "retrying in %us",
                          strerror(-r), (unsigned) (RETRY_USEC / USEC_PER_SEC));
                schedule_retry(state);
        }
        index_rollout_act(fetched_manifests_rollout(state->fetched));
        manifest_problems_report(state->problems, state->manifests,
                                 daemonsets->warnings(daemonsets->userdata));
        notify_changed_objects(state);
        state->is_computed = true;
        state->config.on_recomputed(state->config.userdata);
        return 0;
}

void desired_state_request_recompute(DesiredState *state) {
        if (state->has_scanned)
                (void) sd_event_source_set_enabled(state->recompute_source, SD_EVENT_ONESHOT);
}

static int on_retry_due(sd_event_source *source, uint64_t usec, void *userdata) {
        desired_state_request_recompute(userdata);
        return 0;
}

void desired_state_suspend(DesiredState *state) {
        state->is_suspended = true;
}

void desired_state_on_pod(DesiredState *state, const Pod *pod) {
        if (!state)
                return;
        pod_rollouts_on_pod(state->rollouts, pod);
        index_rollout_on_pod(fetched_manifests_rollout(state->fetched));
}

void desired_state_list_images(const DesiredState *state, ImageSet *ret) {
        pod_rollouts_list_images(state->rollouts, ret);
        index_rollout_list_images(fetched_manifests_rollout(state->fetched), ret);
}

bool desired_state_is_computed(const DesiredState *state) {
        return state->is_computed;
}

const ManifestDirectory *desired_state_manifests(const DesiredState *state) {
        return state->manifests;
}

NodeSources desired_state_sources(const DesiredState *state) {
        return fetched_manifests_status(state->fetched);
}

/* ---- start ---- */

int desired_state_restore_pod(const PodSource *source, const Pod *pod, void *userdata) {
        DesiredState *state = userdata;
        const ApiServerPodSource *apiserver = &state->config.apiserver;
        const DaemonSetPodSource *daemonsets = &state->config.daemonsets;
        Pod *copy;
        int r;

        if (source->kind == POD_SOURCE_APISERVER)
                return apiserver->restore_pod ? apiserver->restore_pod(pod, apiserver->userdata)
                                              : 0;
        r = daemonsets->claim_record(source, pod, daemonsets->userdata);
        if (r != 0 || !pod_source_is_manifest(source))
                return r < 0 ? r : 0;
        r = pod_copy(pod, &copy);
        return r < 0 ? r
                     : manifest_directory_restore_pod_take(state->manifests, source->name, copy);
}

int desired_state_restore_daemonset(const PodSource *source, const DaemonSet *set, void *userdata) {
        DesiredState *state = userdata;
        const ApiServerPodSource *apiserver = &state->config.apiserver;
        DaemonSet *copy;
        int r;

        if (!pod_source_is_manifest(source))
                return apiserver->restore_daemonset
                               ? apiserver->restore_daemonset(set, apiserver->userdata)
                               : 0;
        r = daemonset_copy(set, &copy);
        return r < 0 ? r
                     : manifest_directory_restore_set_take(state->manifests, source->name, copy);
}

static void on_manifests_changed(void *userdata) {
        DesiredState *state = userdata;

        state->has_scanned = true;
        desired_state_request_recompute(state);
}

int desired_state_start(DesiredState *state, Error *reterr) {
        int r;

        fetched_manifests_load(state->fetched);
        r = manifest_directory_start(state->manifests, reterr);
        return r < 0 ? r : fetched_manifests_start(state->fetched);
}

/* Sets the stop reason of the pods in step 0, after which no remaining pod starts. 'steps' excludes
 * pods that have stopped but cannot be removed: no pod waits for them. */
static int give_drain_reasons(ActualPods *actual, const size_t *steps) {
        size_t next = 0;

        for (size_t i = 0; i < actual->n; i++) {
                size_t step = actual->items[i].removal_fails ? 0 : steps[next++];

                if (step > 0 && actual->items[i].pod)
                        continue;
                actual->items[i].stop_reason = strdup("draining the node");
                if (!actual->items[i].stop_reason)
                        return -ENOMEM;
        }
        return 0;
}

static int choose_drained_pods(ActualPods *actual) {
        cleanup_free const Pod **pods = calloc(actual->n + 1, sizeof(*pods));
        cleanup_free size_t *steps = calloc(actual->n + 1, sizeof(*steps));
        size_t n_steps, n = 0;
        int r;

        if (!pods || !steps)
                return -ENOMEM;
        for (size_t i = 0; i < actual->n; i++) {
                const ActualPod *one = &actual->items[i];

                if (!one->removal_fails)
                        pods[n++] = one->pod ? one->pod : one->successor;
        }
        r = pod_order_stop_steps(pods, n, steps, &n_steps);
        return r < 0 ? r : give_drain_reasons(actual, steps);
}

static bool is_all_terminating(const ActualPods *actual) {
        for (size_t i = 0; i < actual->n; i++)
                if (!actual->items[i].is_terminating || actual->items[i].successor)
                        return false;
        return true;
}

static int drain_desired_pods(DesiredState *state) {
        cleanup_with(desired_pods_done) DesiredPods desired = { 0 };
        cleanup_with(actual_pods_done) ActualPods actual = { 0 };
        int r = pod_manager_list(state->config.pod_manager, &actual);

        if (r < 0)
                return r;
        pod_manager_set_draining(state->config.pod_manager);
        pod_manager_remove_leftovers(state->config.pod_manager);
        if (is_all_terminating(&actual))
                return 0;
        r = choose_drained_pods(&actual);
        return r < 0 ? r : apply_desired_pods(state, &desired, &actual);
}

static int on_drain_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        DesiredState *state = userdata;
        int r = pod_manager_drained(state->config.pod_manager);

        if (r < 0 ||
            (r > 0 && (!state->drained_systemd || systemd_client_is_idle(state->drained_systemd))))
                return sd_event_exit(state->config.event, r < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
        if (drain_desired_pods(state) < 0)
                log_error("Cannot stop all pods yet: out of memory");
        return event_timer_arm(source, DRAIN_POLL_USEC);
}

int desired_state_start_drain(DesiredState *state, SystemdClient *systemd) {
        int r = sd_event_add_time_relative(state->config.event, &state->drain_timer, CLOCK_BOOTTIME,
                                           0, DRAIN_POLL_USEC, on_drain_timer, state);

        state->drained_systemd = systemd;
        return r < 0 ? r : drain_desired_pods(state);
}

static const PodStatus *get_pod_status(const char *uid, void *userdata) {
        const DesiredState *state = userdata;

        return pod_manager_pod_status(state->config.pod_manager, uid);
}

static bool is_rolled_back_as_a_whole(const PodSource *source, void *userdata) {
        const DesiredState *state = userdata;

        return source->kind == POD_SOURCE_INDEX && fetched_manifests_have_deadline(state->fetched);
}

static void on_rollout_due(void *userdata) {
        desired_state_request_recompute(userdata);
}

static void on_rollout_event(const PodEvent *event, void *userdata) {
        const DesiredState *state = userdata;

        state->config.on_event(event, state->config.userdata);
}

static const char *find_present_digest(const char *reference, void *userdata) {
        const DesiredState *state = userdata;

        return image_store_find_digest(state->config.images, reference);
}

static int build_pod_rollouts(DesiredState *state) {
        return pod_rollouts_new(&(PodRolloutsConfig){ .event = state->config.event,
                                                      .state_dir = state->config.paths->state_dir,
                                                      .clock = state->config.clock,
                                                      .get_status = get_pod_status,
                                                      .is_excluded = is_rolled_back_as_a_whole,
                                                      .image_digest_of = find_present_digest,
                                                      .on_recompute_due = on_rollout_due,
                                                      .on_event = on_rollout_event,
                                                      .userdata = state },
                                &state->rollouts);
}

int desired_state_new(const DesiredStateConfig *config, DesiredState **ret) {
        cleanup_with(desired_state_freep) DesiredState *state = calloc(1, sizeof(*state));
        IndexRolloutConfig rollout;
        int r;

        if (!state)
                return -ENOMEM;
        state->config = *config;
        rollout = (IndexRolloutConfig){ .clock = config->clock,
                                        .node_name = config->node_name,
                                        .daemonsets = &state->config.daemonsets,
                                        .get_status = get_pod_status,
                                        .on_recompute_due = on_rollout_due,
                                        .userdata = state };
        state->problems = manifest_problems_new(config->on_event, config->userdata);
        if (!state->problems)
                return -ENOMEM;
        /* Runs after all other events of a turn of the loop, and before pods are stepped. */
        r = event_add_disabled_defer(config->event, &state->recompute_source,
                                     SD_EVENT_PRIORITY_NORMAL + 5, on_recompute_due, state);
        if (r < 0)
                return r;
        r = event_add_disabled_timer(config->event, &state->retry_timer, CLOCK_BOOTTIME, 0,
                                     on_retry_due, state);
        if (r < 0)
                return r;
        r = manifest_directory_new(config->event, config->paths->manifest_dir, config->node_name,
                                   on_manifests_changed, state, &state->manifests);
        if (r < 0)
                return r;
        r = fetched_manifests_new(&(FetchedManifestsConfig){ .event = config->event,
                                                             .config = config->config,
                                                             .paths = config->paths,
                                                             .manifests = state->manifests,
                                                             .images = config->images,
                                                             .node = config->node,
                                                             .rollout = rollout,
                                                             .on_event = config->on_event,
                                                             .on_status = config->on_source_status,
                                                             .userdata = config->userdata },
                                  &state->fetched);
        if (r < 0)
                return r;
        r = build_pod_rollouts(state);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(state);
        return 0;
}

DesiredState *desired_state_free(DesiredState *state) {
        if (!state)
                return NULL;
        pod_rollouts_free(state->rollouts);
        fetched_manifests_free(state->fetched);
        manifest_directory_free(state->manifests);
        manifest_problems_free(state->problems);
        sd_event_source_disable_unref(state->retry_timer);
        sd_event_source_disable_unref(state->drain_timer);
        sd_event_source_disable_unref(state->recompute_source);
        free(state);
        return NULL;
}

static void dump_manifests(const ManifestDirectory *directory, const char *path, FILE *out) {
        const char *error = manifest_directory_last_error(directory);
        const Manifest *const *manifests;
        size_t n = manifest_directory_list(directory, &manifests);
        char since[RFC3339_SIZE];

        dump_section(out, "Sources");
        dump_line(out, 1, "directory: %s, %zu files, %s%s", path, n, error ? "error: " : "ok",
                  strna(error));
        for (size_t i = 0; i < n; i++) {
                const Manifest *manifest = manifests[i];

                dump_line(out, 1, "file: %s, %zu pods, %zu DaemonSets, %zu other objects, %s",
                          manifest->file, manifest->pods.n, manifest->daemonsets.n,
                          manifest->data.n, manifest->error ? "error" : "ok");
                if (manifest->error)
                        dump_line(out, 2, "error since %s: %s",
                                  format_rfc3339(since, manifest->error_since), manifest->error);
        }
}

static void dump_fetched_sources(const FetchedManifests *fetched, FILE *out) {
        NodeSources sources = fetched_manifests_status(fetched);

        for (size_t i = 0; i < sources.n; i++) {
                const NodeSourceStatus *source = &sources.items[i];
                char succeeded[RFC3339_SIZE];

                dump_line(out, 1, "source: %s, last good answer: %s, %s%s%s", source->name,
                          source->succeeded > 0 ? format_rfc3339(succeeded, source->succeeded)
                                                : "none",
                          source->has_failed ? "error" : "ok", source->message ? ": " : "",
                          strna(source->message));
        }
}

static void dump_desired_pod(const ActualPod *actual, FILE *out) {
        const ObjectMeta *metadata = actual_pod_metadata(actual);
        const Pod *pod = actual->successor ? actual->successor : actual->pod;
        const PodSource *pod_source = actual->successor ? actual->successor_source : actual->source;
        cleanup_free char *source = pod_source ? print_pod_source(pod_source, pod) : NULL;

        dump_line(out, 1, "pod: %s/%s, source: %s, %s%s", metadata->namespace, metadata->name,
                  source ? source : "-",
                  !actual->pod             ? "not started"
                  : actual->is_terminating ? "terminating"
                                           : "started",
                  actual->pod && actual->successor ? ", with a successor" : "");
}

void desired_state_dump(const DesiredState *state, FILE *out) {
        cleanup_with(actual_pods_done) ActualPods actual = { 0 };
        char age[DUMP_DURATION_SIZE], counts[ACTION_COUNTS_SIZE];

        dump_manifests(state->manifests, state->config.paths->manifest_dir, out);
        dump_fetched_sources(state->fetched, out);
        dump_section(out, "Desired pods");
        if (state->computed_at > 0) {
                dump_line(out, 1, "last recomputation: %s ago, %zu desired; actions: %s",
                          dump_format_duration(age, now_boottime_usec() - state->computed_at),
                          state->n_desired, format_action_counts(state, counts));
        } else {
                dump_line(out, 1, "last recomputation: none");
        }
        pod_rollouts_dump(state->rollouts, out);
        if (pod_manager_list(state->config.pod_manager, &actual) < 0)
                return;
        for (size_t i = 0; i < actual.n; i++)
                dump_desired_pod(&actual.items[i], out);
}
