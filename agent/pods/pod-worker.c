/* SPDX-License-Identifier: Apache-2.0 */
/* Pods step; containers are driven. The shim's events move the phase and the containers' machines
 * (pod-events.c); pod_worker_step() then does whatever is due. A pod that is edited goes on as far
 * as it can (pod-edit.c); one that is replaced is two lives: the old one ends, then the new one
 * starts.
 */

#include "agent/pods/pod-worker.h"

#include "agent/bundle/cgroups.h"
#include "agent/bundle/logs.h"
#include "agent/bundle/paths.h"
#include "agent/model/schema.h"
#include "agent/pods/event-recorder.h"
#include "agent/pods/pod-worker-private.h"
#include "agent/pods/slices.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/message-ids.h"

/* A sandbox that cannot be made is tried again after a second, then two, to a minute. */
static const BackOffLimits sandbox_back_off = { 1 * USEC_PER_SEC, 60 * USEC_PER_SEC };

/* A shim answers in milliseconds. One that does not is not waited for with READY=1, and not at all
 * once the pod should have ended. */
#define SHIM_ANSWER_USEC   (10 * USEC_PER_SEC)
#define SHIM_TEARDOWN_USEC (60 * USEC_PER_SEC)

const char config_seen_annotation[] = "kubernetes.io/config.seen";

void pod_worker_mark_dirty(PodWorker *worker) {
        worker->context->on_dirty(worker->owner, worker->context->userdata);
}

/* Each time, so that those who look see that it is still tried. */
static void record_worker_error(const PodWorker *worker, const char *message) {
        if (worker->state == WORKER_SETTING_UP)
                record_pod_event(worker, NULL, POD_EVENT_WARNING, "FailedMount", "%s", message);
        else if (worker->is_desired)
                record_pod_event(worker, NULL, POD_EVENT_WARNING, "FailedCreatePodSandBox",
                                 "Failed to create pod sandbox: %s", message);
        else
                record_pod_event(worker, NULL, POD_EVENT_WARNING, "FailedKillPod",
                                 "error killing pod: %s", message);
}

void pod_worker_set_last_error(PodWorker *worker, const char *message) {
        if (message)
                record_worker_error(worker, message);
        if (streq_ptr(worker->last_error, message))
                return;
        free(worker->last_error);
        worker->last_error = message ? strdup(message) : NULL;
        if (message) {
                log_set_message_id(MESSAGE_POD_ERROR);
                log_warning("Pod '%s': %s", worker->description, message);
        }
        pod_worker_mark_dirty(worker);
}

bool pod_worker_sandbox_is_ready(const PodWorker *worker) {
        return worker->state == WORKER_READY && !worker->sandbox_is_lost;
}

void pod_worker_set_state(PodWorker *worker, PodWorkerState state) {
        worker->timer = sd_event_source_disable_unref(worker->timer);
        worker->state = state;
}

void pod_worker_abandon_sandbox(PodWorker *worker, const char *why) {
        pod_worker_set_last_error(worker, why);
        worker->sandbox_is_lost = true;
        pod_worker_mark_dirty(worker);
}

static int on_pod_worker_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        PodWorker *worker = userdata;

        if (worker->state == WORKER_RETRY_WAIT)
                pod_worker_set_state(worker, worker->retry_state);
        else if (worker->is_desired) {
                worker->is_unresponsive = true;
                pod_worker_set_last_error(worker, "its shim does not answer");
        } else
                pod_worker_abandon_sandbox(worker, "its shim does not answer and is ended");
        pod_worker_mark_dirty(worker);
        return 0;
}

static void arm_pod_worker_timer(PodWorker *worker, uint64_t usec) {
        int r = sd_event_add_time_relative(worker->context->event, &worker->timer, CLOCK_BOOTTIME,
                                           usec, 0, on_pod_worker_timer, worker);

        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the timer of pod '%s'", worker->description);
}

void pod_worker_retry_later(PodWorker *worker, PodWorkerState state) {
        worker->retry_delay_usec = back_off_next_delay(worker->retry_delay_usec, &sandbox_back_off);
        worker->retry_state = state;
        pod_worker_set_state(worker, WORKER_RETRY_WAIT);
        arm_pod_worker_timer(worker, worker->retry_delay_usec);
}

static void on_start_slot_acquired(void *userdata) {
        PodContainer *c = userdata;

        container_machine_on_start_slot(c->machine);
}

static int new_pod_containers(PodWorker *worker) {
        const PodSpec *spec = &worker->pod->spec;
        size_t n = pod_count_containers(spec);

        worker->container_order = calloc(n, sizeof(*worker->container_order));
        if (!worker->container_order)
                return -ENOMEM;
        worker->containers = calloc(n, sizeof(*worker->containers));
        if (!worker->containers)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                PodContainer *c = &worker->containers[i];
                ContainerRestartPolicy terms;
                int r;

                c->pod = worker;
                c->spec = pod_nth_container(spec, i);
                c->start_slot = (StartSlot){ .on_acquired = on_start_slot_acquired, .userdata = c };
                terms = container_restart_policy(spec, c->spec);
                r = container_machine_new(
                        &worker->pod->metadata, c->spec, &terms,
                        spec->init_containers.n > 0 ? "PodInitializing" : "ContainerCreating",
                        &worker->context->back_off, &pod_container_driver, c, &c->machine);
                if (r < 0)
                        return r;
                worker->n_containers++;
        }
        return 0;
}

int pod_worker_new_take(PodContext *context, Pod *pod, bool was_recorded, void *owner,
                        PodWorker **ret) {
        const char *seen = string_map_get(&pod->metadata.annotations, config_seen_annotation);
        PodWorker *worker = calloc(1, sizeof(*worker));
        int r = -ENOMEM;

        if (!worker)
                return -ENOMEM;
        worker->context = context;
        worker->owner = owner;
        worker->is_desired = true;
        worker->needs_cleanup = was_recorded;
        if (!seen || parse_rfc3339(seen, &worker->start_time) < 0)
                worker->start_time = now_realtime_usec();
        worker->pod = pod;
        if (asprintf(&worker->description, "%s/%s", pod->metadata.namespace, pod->metadata.name) <
            0)
                worker->description = NULL;
        else
                r = pod_worker_new_attachment(worker);
        if (r >= 0)
                r = new_pod_containers(worker);
        if (r < 0) {
                worker->pod = NULL; /* still the caller's */
                pod_worker_free(worker);
                return r;
        }
        if (was_recorded) {
                pod_worker_load_failure(worker);
                pod_worker_load_terminated(worker);
                pod_worker_load_deletion(worker);
        }
        *ret = worker;
        return 0;
}

static void pod_container_done(PodContainer *c) {
        container_probes_stop(c);
        pod_container_cancel_hook(c);
        start_limiter_release(&c->pod->context->start_limiter, &c->start_slot);
        image_request_cancel(c->image_request);
        image_unref(c->image);
        pod_container_release_volume_images(c);
        free(c->image_id);
        free(c->image_name);
        container_user_done(&c->user);
        sd_event_source_disable_unref(c->retry_timer);
        sd_event_source_disable_unref(c->start_slot_timer);
        pod_container_discard_replayed(c);
        container_machine_free(c->machine);
}

PodWorker *pod_worker_free(PodWorker *worker) {
        if (!worker)
                return NULL;
        for (size_t i = 0; i < worker->n_containers; i++)
                pod_container_done(&worker->containers[i]);
        free(worker->containers);
        free(worker->container_order);
        for (size_t i = 0; i < N_POD_CONDITIONS; i++) {
                free(worker->conditions[i].reason);
                free(worker->conditions[i].message);
        }
        pod_worker_stop_storage_monitor(worker);
        pod_failure_done(&worker->failure);
        child_free(worker->cleanup);
        network_attachment_free(worker->attachment);
        sandbox_free(worker->sandbox);
        sd_event_source_disable_unref(worker->timer);
        sd_event_source_disable_unref(worker->termination_timer);
        sd_event_source_disable_unref(worker->resize_timer);
        sd_event_source_disable_unref(worker->network_check_timer);
        free(worker->terminated);
        free(worker->edit_error);
        free(worker->resize_error);
        sd_event_source_disable_unref(worker->restart_all_timer);
        sd_event_source_disable_unref(worker->deadline_timer);
        free(worker->volume_error);
        free(worker->last_error);
        free(worker->rejection_message);
        free(worker->description);
        pod_free(worker->pod);
        free(worker);
        return NULL;
}

static int on_termination_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        PodWorker *worker = userdata;

        if (worker->sandbox)
                pod_worker_abandon_sandbox(worker, "its shim did not end it in time and is ended");
        return 0;
}

void pod_worker_arm_termination_timer(PodWorker *worker, uint64_t grace_usec) {
        int r;

        worker->termination_timer = sd_event_source_disable_unref(worker->termination_timer);
        r = sd_event_add_time_relative(worker->context->event, &worker->termination_timer,
                                       CLOCK_BOOTTIME, grace_usec + SHIM_TEARDOWN_USEC, 0,
                                       on_termination_timeout, worker);
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the timer of pod '%s'", worker->description);
}

void pod_worker_terminate(PodWorker *worker, const char *reason) {
        uint64_t grace_usec = pod_worker_grace_usec(worker);

        if (!worker->is_desired)
                return;
        worker->is_desired = false;
        worker->deletion_time = now_realtime_usec() + grace_usec;
        log_info("Stopping pod %s: %s", worker->description,
                 reason ? reason : "it was being stopped when the agent stopped");
        if (reason)
                record_pod_event(worker, NULL, POD_EVENT_NORMAL, "Stopping", "%s", reason);
        if (worker->state == WORKER_RETRY_WAIT) { /* what failed is not tried again, its end is */
                worker->retry_delay_usec = 0;
                pod_worker_set_state(worker, worker->retry_state);
        }
        pod_worker_arm_termination_timer(worker, grace_usec);
        pod_worker_mark_dirty(worker);
}

bool pod_worker_is_desired(const PodWorker *worker) {
        return worker->is_desired;
}

bool pod_worker_is_removed(const PodWorker *worker) {
        return worker->state == WORKER_REMOVED;
}

bool pod_worker_is_synced(const PodWorker *worker) {
        return (worker->state != WORKER_SYNCING || worker->is_unresponsive) &&
               !(worker->state == WORKER_NO_SANDBOX && worker->needs_cleanup);
}

const Pod *pod_worker_pod(const PodWorker *worker) {
        return worker->pod;
}

/* ---- what is due ---- */

/* One that ends before its pod was set up will most likely do so again. */
static bool is_before_setup(const PodWorker *worker) {
        return worker->state == WORKER_SETTING_UP || worker->state == WORKER_ATTACHING ||
               (worker->state == WORKER_SYNCING && !worker->needs_cleanup);
}

static void step_sandbox_lost(PodWorker *worker) {
        worker->sandbox_is_lost = false;
        worker->is_unresponsive = false;
        worker->sandbox = sandbox_free(worker->sandbox);
        if (worker->attachment)
                network_attachment_on_sandbox_lost(worker->attachment);
        worker->was_lost_in_setup = is_before_setup(worker);
        if (worker->was_lost_in_setup)
                pod_worker_set_last_error(worker, "its shim ended before the pod was set up");
        else if (worker->state != WORKER_TEARING_DOWN) {
                record_pod_event(worker, NULL, POD_EVENT_NORMAL, "SandboxChanged",
                                 "Pod sandbox changed, it will be killed and re-created.");
                log_set_message_id(MESSAGE_SHIM_EXITED);
                log_warning("The shim of pod '%s' ended, ending its containers",
                            worker->description);
        }
        pod_worker_set_state(worker, WORKER_SANDBOX_LOST);
        pod_worker_lose_containers(worker);
}

static void continue_after_cleanup(PodWorker *worker) {
        /* Of a pod that is not wanted the network may be left, which takes a shim to remove. */
        bool goes_on = worker->is_desired || pod_worker_has_network(worker);

        if (goes_on && worker->was_lost_in_setup)
                pod_worker_retry_later(worker, WORKER_NO_SANDBOX);
        else if (goes_on)
                pod_worker_set_state(worker, WORKER_NO_SANDBOX);
        else /* what was spared for a pod that was wanted still then goes now */
                pod_worker_set_state(worker, worker->cleanup_is_whole ? WORKER_REMOVED
                                                                      : WORKER_SANDBOX_LOST);
        worker->was_lost_in_setup = false;
}

static void on_pod_cleaned(const ChildResult *result, void *userdata) {
        PodWorker *worker = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r = child_explain(result, "Cleaning up", &error);

        worker->cleanup = NULL;
        if (r < 0) {
                pod_worker_set_last_error(worker, error_message(&error, r));
                pod_worker_retry_later(worker, WORKER_SANDBOX_LOST);
        } else {
                worker->needs_cleanup = false;
                /* An edit may be looked at now, and asks who has ended. */
                for (size_t i = 0; i < worker->n_containers; i++)
                        pod_container_recover_attempt(&worker->containers[i]);
                continue_after_cleanup(worker);
        }
        pod_worker_mark_dirty(worker);
}

/* Ends and removes what the pod left; all of it when it is not wanted, else its processes, its
 * mounts and its containers' writable layers, but not its record and its logs, nor, unless it has
 * failed, its volumes. */
static int start_pod_cleanup(PodWorker *worker, Error *reterr) {
        const BundleConfig *config = worker->context->bundle;
        const char *uid = worker->pod->metadata.uid;
        cleanup_free char *run_dir = pod_run_dir(config, uid),
                          *state_dir = pod_state_dir(config, uid);
        cleanup_free char *containers = state_dir ? path_join(state_dir, "containers") : NULL;
        cleanup_free char *log_dir = pod_log_dir(config, worker->pod);
        cleanup_free char *cgroup = cgroup_of_pod(config, pod_qos_class(&worker->pod->spec), uid);
        cleanup_free char *volumes = state_dir ? path_join(state_dir, "volumes") : NULL;
        const char *directories[] = { run_dir, containers, volumes, log_dir, state_dir };

        if (!run_dir || !containers || !volumes || !log_dir || !cgroup)
                return -ENOMEM;
        worker->cleanup_is_whole = !worker->is_desired && !pod_worker_has_network(worker);
        if (worker->cleanup_is_whole) {
                bundle_remove_log_links(config, log_dir);
                slices_stop(worker->context, cgroup);
        }
        return sandbox_cleanup(
                worker->context->sandbox,
                &(SandboxCleanup){
                        .uid = uid,
                        .cgroup = cgroup,
                        .directories = directories,
                        .n_directories =
                                worker->cleanup_is_whole ? N_ELEMENTS(directories)
                                : pod_worker_has_failed(worker) && !worker->failure.is_until_reboot
                                        ? 3
                                        : 2,
                },
                on_pod_cleaned, worker, &worker->cleanup, reterr);
}

static void step_pod_cleanup(PodWorker *worker) {
        cleanup_error Error error = ERROR_NULL;
        int r = start_pod_cleanup(worker, &error);

        if (r < 0) {
                pod_worker_set_last_error(worker, error_message(&error, r));
                pod_worker_retry_later(worker, WORKER_SANDBOX_LOST);
                return;
        }
        pod_worker_set_state(worker, WORKER_CLEANING_UP);
}

/* Restart counts that nobody remembers are in the names of the logs. */
void pod_container_recover_attempt(PodContainer *c) {
        int last = -1;

        if (container_machine_is_waiting(c->machine))
                last = bundle_last_logged_attempt(c->pod->context->bundle, c->pod->pod,
                                                  c->spec->name);
        if (last >= 0 && !pod_container_recover_terminated(c, (unsigned) last))
                container_machine_recover(c->machine, (unsigned) last, now_realtime_usec());
}

/* As the kubelet takes it where there is no SELinux. Told once in a pod's life. */
static void warn_selinux_labels(PodWorker *worker) {
        const PodSpec *spec = &worker->pod->spec;
        bool has_label = spec->security_context.se_linux_options != NULL;

        for (size_t i = 0; i < worker->n_containers; i++)
                has_label = has_label ||
                            worker->containers[i].spec->security_context.se_linux_options != NULL;
        if (!has_label || worker->context->bundle->has_se_linux || worker->is_selinux_warned)
                return;
        worker->is_selinux_warned = true;
        log_warning("Pod '%s': seLinuxOptions have no effect: SELinux is not enabled on this node",
                    worker->description);
}

static int start_pod_sandbox(PodWorker *worker, Error *reterr) {
        const PodContext *context = worker->context;
        const char *runtime;
        int r = check_pod_classes(&context->bundle->objects, &context->runtimes, worker->pod,
                                  &runtime, reterr);

        if (r >= 0)
                r = bundle_prepare_pod(context->bundle, worker->pod, reterr);
        if (r < 0)
                return r;
        slices_set_pod(context, worker->pod);
        sandbox_set_runtime(worker->sandbox, runtime);
        warn_selinux_labels(worker);
        if (worker->attachment) /* an earlier shim's, of which we know by its record */
                network_attachment_on_sandbox_lost(worker->attachment);
        return sandbox_start(
                worker->sandbox,
                &(SandboxStartOptions){ .description = worker->description,
                                        .host_network = worker->pod->spec.host_network,
                                        .host_ipc = worker->pod->spec.host_ipc,
                                        .has_systemd_cgroup = worker->context->bundle->has_slices },
                reterr);
}

static int connect_or_start_sandbox(PodWorker *worker, Error *reterr) {
        bool is_over;
        int r = 0;

        if (!worker->sandbox)
                r = sandbox_new(worker->context->sandbox, worker->pod->metadata.uid,
                                pod_worker_on_sandbox_event, worker, &worker->sandbox);
        if (r < 0)
                return r;
        r = sandbox_connect(worker->sandbox, reterr);
        if (r != 0)
                return r;
        is_over = !pod_worker_should_run(worker);
        /* Nobody is there. What an earlier shim of this pod may have left is cleaned up first. */
        if (worker->needs_cleanup || (!worker->is_desired && !pod_worker_has_network(worker))) {
                worker->sandbox = sandbox_free(worker->sandbox);
                step_pod_cleanup(worker);
                return 0;
        }
        r = is_over ? pod_worker_start_teardown_sandbox(worker, reterr)
                    : start_pod_sandbox(worker, reterr);
        return r < 0 ? r : 1;
}

static bool all_containers_finished(const PodWorker *worker) {
        for (size_t i = 0; i < worker->n_containers; i++)
                if (!container_machine_is_finished(worker->containers[i].machine))
                        return false;
        return true;
}

/* Whether there is anything to start a shim for, or one that may have to be ended. */
static bool needs_sandbox(PodWorker *worker) {
        if (!worker->is_desired || worker->needs_cleanup)
                return true;
        for (size_t i = 0; i < worker->n_containers; i++)
                pod_container_recover_attempt(&worker->containers[i]);
        if (!pod_worker_should_run(worker)) /* but its addresses are given back */
                return pod_worker_has_network(worker) && !worker->failure.is_until_reboot;
        pod_worker_reset_order(worker);
        return true;
}

static void step_without_sandbox(PodWorker *worker) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (!needs_sandbox(worker)) {
                pod_worker_sync_containers(worker);
                return;
        }
        if (pod_worker_should_run(worker) && !worker->needs_cleanup &&
            !pod_worker_is_admitted(worker))
                return;
        r = connect_or_start_sandbox(worker, &error);
        if (r < 0) {
                pod_worker_set_last_error(worker, error_message(&error, r));
                worker->sandbox = sandbox_free(worker->sandbox);
                pod_worker_retry_later(worker, WORKER_NO_SANDBOX);
        } else if (r > 0) {
                pod_worker_set_state(worker, WORKER_SYNCING);
                arm_pod_worker_timer(worker, SHIM_ANSWER_USEC);
        }
}

static void step_terminating_pod(PodWorker *worker) {
        pod_worker_sync_containers(worker);
        if (all_containers_finished(worker))
                pod_worker_tear_down_sandbox(worker);
}

static void step_ready_pod(PodWorker *worker) {
        if (!worker->is_desired || pod_worker_has_failed(worker)) {
                step_terminating_pod(worker);
                return;
        }
        if (worker->last_error &&
            !pod_worker_must_stop_containers(worker)) { /* what failed is due again */
                if (pod_worker_has_teardown_sandbox(worker))
                        pod_worker_tear_down_sandbox(worker);
                else
                        pod_worker_request_sandbox_setup(worker);
                return;
        }
        pod_worker_restart_outdated(worker);
        pod_worker_sync_containers(worker);
}

static void step_pod_state(PodWorker *worker) {
        if (worker->sandbox_is_lost)
                step_sandbox_lost(worker);
        pod_worker_enforce_deadline(worker);

        switch (worker->state) {
        case WORKER_NO_SANDBOX:
                step_without_sandbox(worker);
                break;
        case WORKER_READY:
                step_ready_pod(worker);
                break;
        case WORKER_SANDBOX_LOST:
                step_pod_cleanup(worker);
                break;
        case WORKER_SETTING_UP:
                if (!worker->is_desired)
                        step_terminating_pod(worker);
                break;
        case WORKER_RETRY_WAIT:
        case WORKER_SYNCING:
        case WORKER_ATTACHING:
        case WORKER_DETACHING:
        case WORKER_TEARING_DOWN:
        case WORKER_CLEANING_UP:
        case WORKER_REMOVED:
                break;
        }
        pod_worker_monitor_storage(worker);
}

LogSubject pod_worker_log_subject(const PodWorker *worker, const char *container) {
        const ObjectMeta *metadata = &worker->pod->metadata;

        return (LogSubject){ metadata->namespace, metadata->name, metadata->uid, container };
}

void pod_worker_step(PodWorker *worker) {
        LogSubject subject = pod_worker_log_subject(worker, NULL);
        LOG_ABOUT(&subject);

        step_pod_state(worker);
        pod_worker_store_terminated(worker);
        for (size_t i = 0; i < worker->n_containers; i++)
                container_probes_step(&worker->containers[i]);
}

void pod_worker_on_images_changed(PodWorker *worker) {
        for (size_t i = 0; i < worker->n_containers; i++)
                container_machine_retry_now(worker->containers[i].machine,
                                            pod_worker_may_start_container(&worker->containers[i]));
}
