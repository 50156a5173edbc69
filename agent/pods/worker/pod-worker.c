/* SPDX-License-Identifier: Apache-2.0 */
/* The pod's state. Its parts (termination, failure, deadline, admission, storage limits, resize,
 * volumes, status) are in separate files; this file combines them to decide which containers start
 * and stop. The sandbox is in pod-worker-sandbox.c. An edit is applied to the running pod as far as
 * the plan allows; a replaced pod terminates, then a new instance starts. */

#include "agent/pods/worker/pod-worker.h"

#include "agent/bundle/cgroups.h"
#include "agent/model/object-identity.h"
#include "agent/model/schema.h"
#include "agent/pods/pod/event-recorder.h"
#include "agent/pods/pod/host-ports.h"
#include "agent/pods/pod/pod-csi-volumes.h"
#include "agent/pods/pod/pod-edit.h"
#include "agent/pods/pod/slices.h"
#include "agent/pods/status/eviction-candidate.h"
#include "agent/pods/worker/pod-worker-private.h"
#include "agent/sandbox/port-connection.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/message-ids.h"
#include "common/text.h"

/* How long a terminating pod's shim may take in addition to the grace period. */
#define SHIM_TEARDOWN_USEC (60 * USEC_PER_SEC)

/* The kubelet's grace period for a container that is stopped because all are restarted. */
#define RESTART_ALL_GRACE_USEC (2 * USEC_PER_SEC)

/* When the removal of a pod has reached this back-off delay, it has failed five times. */
#define REMOVAL_FAILS_USEC (16 * USEC_PER_SEC)

/* ---- errors ---- */

/* Emits an event each time, so that users see that the agent keeps trying. */
static void record_worker_error(const PodWorker *worker, const char *message) {
        const PodInstance *instance = &worker->instance;
        bool is_starting = instance->is_desired && worker->sandbox.state == WORKER_NO_SANDBOX;

        if (worker->sandbox.state == WORKER_SETTING_UP ||
            (is_starting && worker->sandbox.start_stage == START_VOLUMES))
                record_pod_event(instance, NULL, POD_EVENT_WARNING,
                                 pod_volume_event_reason(message), "%s", message);
        else if (is_starting && worker->sandbox.start_stage == START_DEVICES)
                record_pod_event(instance, NULL, POD_EVENT_WARNING, "FailedPrepareDynamicResources",
                                 "Failed to prepare dynamic resources: %s", message);
        else if (instance->is_desired)
                record_pod_event(instance, NULL, POD_EVENT_WARNING, "FailedCreatePodSandBox",
                                 "Failed to create pod sandbox: %s", message);
        else
                record_pod_event(instance, NULL, POD_EVENT_WARNING, "FailedKillPod",
                                 "error killing pod: %s", message);
}

void pod_worker_set_last_error(PodWorker *worker, const char *message) {
        if (message)
                record_worker_error(worker, message);
        if (streq_ptr(worker->last_error, message) && !worker->is_only_awaited)
                return;
        free(worker->last_error);
        worker->last_error = message ? strdup(message) : NULL;
        worker->is_only_awaited = false;
        if (message) {
                log_set_message_id(MESSAGE_POD_ERROR);
                log_warning("Pod '%s': %s", worker->instance.description, message);
        }
        pod_instance_mark_dirty(&worker->instance);
}

void pod_worker_set_awaited(PodWorker *worker, const char *message) {
        if (streq_ptr(worker->last_error, message))
                return;
        free(worker->last_error);
        worker->last_error = strdup(message);
        worker->is_only_awaited = true;
        log_debug("Pod '%s' waits: %s", worker->instance.description, message);
        pod_instance_mark_dirty(&worker->instance);
}

/* Emits the kubelet's event. When the network becomes ready, the pod is stepped again. */
bool pod_worker_has_network(PodWorker *worker) {
        const PodInstance *pod = &worker->instance;
        const char *not_ready = pod->context->network->not_ready;
        cleanup_free char *message = NULL;

        if (!not_ready || !pod->attachment)
                return true;
        message = text_format("network is not ready: %s", not_ready);
        if (!streq_ptr(worker->last_error, strna(message)))
                record_pod_event(pod, NULL, POD_EVENT_WARNING, "NetworkNotReady", "%s",
                                 strna(message));
        pod_worker_set_awaited(worker, strna(message));
        return false;
}

void pod_worker_set_edit_error(PodWorker *worker, const char *message) {
        if (streq_ptr(worker->edit_error, message))
                return;
        free(worker->edit_error);
        worker->edit_error = message ? strdup(message) : NULL;
        if (message) {
                log_warning(
                        "Cannot apply the edit of pod '%s' yet: %s; the pod continues unchanged",
                        worker->instance.description, message);
                record_pod_event(&worker->instance, NULL, POD_EVENT_WARNING, "EditPending", "%s",
                                 message);
        }
        pod_instance_mark_dirty(&worker->instance);
}

/* ---- requests of the containers ---- */

bool pod_worker_has_failed(const PodWorker *worker) {
        return worker->failure.reason != NULL;
}

bool pod_worker_is_terminating(const PodWorker *worker) {
        return !worker->instance.is_desired || pod_worker_has_failed(worker);
}

bool pod_worker_should_run(PodWorker *worker) {
        return !pod_worker_is_terminating(worker) && pod_containers_should_run(&worker->containers);
}

bool pod_worker_must_stop_containers(const PodWorker *worker) {
        return pod_worker_is_terminating(worker) ||
               worker->containers.restart_all == RESTART_ALL_STOPPING;
}

uint64_t pod_worker_grace_period(const PodWorker *worker) {
        return pod_grace_period_usec(&worker->termination, &worker->instance.pod->spec,
                                     worker->failure.grace_usec);
}

static bool may_start_container(const PodContainer *container, void *userdata) {
        PodWorker *worker = userdata;

        return pod_worker_sandbox_is_ready(worker) && !pod_worker_must_stop_containers(worker) &&
               pod_containers_allow_start(&worker->containers, container);
}

static bool must_stop_container(void *userdata) {
        return pod_worker_must_stop_containers(userdata);
}

static bool is_restarting_all(void *userdata) {
        const PodWorker *worker = userdata;

        return worker->containers.restart_all == RESTART_ALL_STOPPING;
}

static unsigned generation_of_containers(void *userdata) {
        const PodWorker *worker = userdata;

        return worker->containers.generation;
}

static uint64_t remaining_grace_of_worker(void *userdata) {
        const PodWorker *worker = userdata;

        return is_restarting_all(userdata)
                       ? RESTART_ALL_GRACE_USEC
                       : pod_remaining_grace_usec(&worker->termination,
                                                  pod_worker_grace_period(worker));
}

static void restore_worker_slices(void *userdata) {
        pod_worker_restore_slices(userdata);
}

static void abandon_worker_sandbox(const char *why, void *userdata) {
        pod_worker_abandon_sandbox(userdata, why);
}

static const ContainerInstance *find_worker_container(const char *name, void *userdata) {
        const PodWorker *worker = userdata;
        const PodContainer *container = pod_containers_find(&worker->containers, name);

        return container ? pod_container_instance(container) : NULL;
}

static const PodContainerCallbacks pod_container_callbacks = {
        .may_start = may_start_container,
        .must_stop = must_stop_container,
        .is_restarting_all = is_restarting_all,
        .generation = generation_of_containers,
        .remaining_grace_usec = remaining_grace_of_worker,
        .restore_slices = restore_worker_slices,
        .abandon_sandbox = abandon_worker_sandbox,
        .find_container = find_worker_container,
};

/* ---- status ---- */

/* 0 or -ENOMEM. */
static int update_worker_status(PodWorker *worker) {
        const PodSandboxProgress *sandbox = &worker->sandbox;
        bool is_ready = sandbox->state == WORKER_READY;
        const PodStatus *status;
        int r = compute_pod_status(
                &(PodStatusInput){
                        .pod = &worker->instance,
                        .containers = &worker->containers,
                        .failure = &worker->failure,
                        .admission = &worker->admission,
                        .awaited_pods = worker->awaited.message,
                        .last_error = worker->last_error,
                        .edit_error = worker->edit_error,
                        .resize_error = worker->resize.error,
                        .deletion_time = worker->termination.deletion_time,
                        .now = now_realtime_usec(),
                        .is_syncing = !pod_worker_is_synced(worker),
                        .is_provisional = sandbox->needs_cleanup,
                        /* A shim from an earlier agent has already been set up. */
                        .has_sandbox = is_ready ||
                                       (sandbox->state == WORKER_SYNCING && sandbox->needs_cleanup),
                        .is_sandbox_ready = is_ready,
                },
                worker->status, &status);

        if (r < 0)
                return r;
        pod_status_unref(worker->status);
        worker->status = status;
        return 0;
}

/* ---- the worker ---- */

static int on_termination_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        PodWorker *worker = userdata;

        if (worker->instance.sandbox)
                pod_worker_abandon_sandbox(worker,
                                           "its shim did not stop it in time and is killed");
        return 0;
}

void pod_worker_arm_termination(PodWorker *worker, uint64_t grace_usec) {
        int r;

        worker->termination_timer = sd_event_source_disable_unref(worker->termination_timer);
        r = sd_event_add_time_relative(worker->instance.context->event, &worker->termination_timer,
                                       CLOCK_AWAKE, grace_usec + SHIM_TEARDOWN_USEC, 0,
                                       on_termination_timeout, worker);
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the termination timer of pod '%s'",
                                       worker->instance.description);
}

static void on_resize_retry(void *userdata);
static void on_volumes_retry(void *userdata);

static int init_worker_parts(PodWorker *worker) {
        int r = pod_worker_init_sandbox(worker);

        if (r < 0)
                return r;
        active_deadline_init(&worker->deadline, &worker->instance);
        worker->storage = (StorageMonitor){ .pod = &worker->instance,
                                            .on_exceeded = pod_worker_exceed_storage_limit,
                                            .userdata = worker };
        worker->resize = (PodResize){ .pod = &worker->instance,
                                      .on_retry = on_resize_retry,
                                      .userdata = worker };
        worker->volumes = (PodVolumes){ .pod = &worker->instance,
                                        .on_retry = on_volumes_retry,
                                        .userdata = worker };
        return pod_containers_init(&worker->containers, &worker->instance, &pod_container_callbacks,
                                   worker);
}

/* Whether a terminated container of the pod may be one that never runs again. */
static bool keeps_terminated_containers(const PodWorker *worker) {
        return pod_may_complete(&worker->instance.pod->spec) ||
               (pod_worker_has_failed(worker) && !worker->failure.is_until_reboot);
}

static int load_checkpoints(PodWorker *worker) {
        int r = 0;

        if (!pod_worker_has_failed(worker))
                r = pod_failure_load(&worker->failure, &worker->instance);
        if (r < 0)
                return r;
        if (pod_worker_has_failed(worker))
                pod_worker_arm_termination(worker, pod_worker_grace_period(worker));
        if (keeps_terminated_containers(worker) && !worker->terminated.text)
                r = terminated_containers_load(&worker->terminated, &worker->instance);
        if (r < 0)
                return r;
        r = pod_termination_load(&worker->termination, &worker->instance);
        if (r > 0)
                pod_worker_terminate(worker, NULL);
        return r;
}

int pod_worker_load_checkpoints(PodWorker *worker, Error *reterr) {
        int r = load_checkpoints(worker);

        worker->has_unread_checkpoints = r < 0;
        if (r >= 0)
                return 0;
        return error_setf(reterr, -r, "cannot read the checkpoints of an earlier agent: %s",
                          strerror(-r));
}

int pod_worker_new_take(PodContext *context, Pod *pod, bool was_recorded, void *owner,
                        PodWorker **ret) {
        PodWorker *worker = calloc(1, sizeof(*worker));
        int r;

        if (!worker)
                return -ENOMEM;
        r = pod_instance_init_take(&worker->instance, context, pod, owner);
        if (r >= 0)
                r = init_worker_parts(worker);
        /* Processes of the pod may be left even if it has no record. */
        worker->sandbox.needs_cleanup =
                was_recorded || pod_has_cgroup_record(context->bundle, pod->metadata.uid);
        if (r >= 0 && was_recorded && pod_worker_load_checkpoints(worker, NULL) == -ENOMEM)
                r = -ENOMEM;
        if (r >= 0)
                r = update_worker_status(worker);
        if (r < 0) {
                worker->instance.pod = NULL; /* the caller still owns it */
                pod_worker_free(worker);
                return r;
        }
        *ret = worker;
        return 0;
}

PodWorker *pod_worker_free(PodWorker *worker) {
        if (!worker)
                return NULL;
        pod_containers_done(&worker->containers);
        storage_monitor_stop(&worker->storage);
        pod_failure_done(&worker->failure);
        pod_admission_done(&worker->admission);
        awaited_pods_done(&worker->awaited, &worker->instance);
        active_deadline_stop(&worker->deadline);
        pod_resize_done(&worker->resize);
        pod_volumes_done(&worker->volumes);
        terminated_containers_done(&worker->terminated);
        sd_event_source_disable_unref(worker->termination_timer);
        pod_worker_done_sandbox(worker);
        free(worker->edit_error);
        free(worker->last_error);
        pod_status_unref(worker->status);
        pod_instance_done(&worker->instance);
        free(worker);
        return NULL;
}

/* ---- queries ---- */

/* Only a pod with readiness gates depends on them. */
void pod_worker_set_external_conditions(PodWorker *worker, const StringMap *conditions) {
        PodInstance *pod = &worker->instance;
        StringMap copy = { 0 };
        int r = 0;

        if (pod->pod->spec.readiness_gates.n == 0 ||
            string_map_equal(&pod->external_conditions, conditions))
                return;
        for (size_t i = 0; r >= 0 && i < conditions->n; i++)
                r = string_map_set(&copy, conditions->items[i].key, conditions->items[i].value);
        if (r < 0) {
                string_map_done(&copy);
                return;
        }
        string_map_done(&pod->external_conditions);
        pod->external_conditions = copy;
        pod_instance_mark_dirty(pod);
}

const Pod *pod_worker_pod(const PodWorker *worker) {
        return worker->instance.pod;
}

bool pod_worker_is_desired(const PodWorker *worker) {
        return worker->instance.is_desired;
}

bool pod_worker_is_removed(const PodWorker *worker) {
        return worker->sandbox.state == WORKER_REMOVED;
}

bool pod_worker_is_synced(const PodWorker *worker) {
        const PodSandboxProgress *sandbox = &worker->sandbox;

        return (sandbox->state != WORKER_SYNCING || sandbox->is_unresponsive) &&
               !(sandbox->state == WORKER_NO_SANDBOX && sandbox->needs_cleanup);
}

/* An earlier agent has left the pod, and its shim has not reported its containers yet. */
static bool is_adoption_pending(const PodSandboxProgress *sandbox) {
        PodWorkerState state =
                sandbox->state == WORKER_RETRY_WAIT ? sandbox->retry_state : sandbox->state;

        return sandbox->needs_cleanup && (state == WORKER_NO_SANDBOX || state == WORKER_SYNCING);
}

void pod_worker_list_images(const PodWorker *worker, ImageSet *ret) {
        if (is_adoption_pending(&worker->sandbox))
                ret->is_everything = true;
        for (size_t i = 0; i < worker->containers.n; i++)
                pod_container_list_images(worker->containers.items[i], ret);
}

bool pod_worker_is_editable(const PodWorker *worker) {
        return worker->instance.is_desired && worker->sandbox.state != WORKER_SYNCING &&
               !worker->sandbox.needs_cleanup;
}

bool pod_worker_is_outdated(const PodWorker *worker) {
        return pod_containers_are_outdated(&worker->containers);
}

bool pod_worker_awaits_edit(const PodWorker *worker) {
        return pod_containers_await_edit(&worker->containers);
}

/* A pod that has failed as a whole may be replaced immediately, because it never starts again. */
bool pod_worker_has_terminated(PodWorker *worker) {
        return !pod_worker_should_run(worker);
}

bool pod_worker_has_processes(const PodWorker *worker) {
        return pod_containers_have_processes(&worker->containers);
}

const char *pod_worker_removal_error(const PodWorker *worker) {
        bool fails = !worker->instance.is_desired && !pod_worker_has_processes(worker) &&
                     worker->sandbox.retry_delay_usec >= REMOVAL_FAILS_USEC;

        return fails ? worker->last_error : NULL;
}

bool pod_worker_has_started(const PodWorker *worker) {
        return pod_containers_have_started(&worker->containers);
}

const PodStatus *pod_worker_status(const PodWorker *worker) {
        return worker->status;
}

void pod_worker_for_each_probe(const PodWorker *worker, probe_sample_t each, void *userdata) {
        for (size_t i = 0; i < worker->containers.n; i++)
                pod_container_for_each_probe(worker->containers.items[i], each, userdata);
}

int pod_worker_open_session(PodWorker *worker, const char *name, const SandboxSession *session,
                            int socket_fd, Error *reterr) {
        const PodContainer *container = pod_containers_find(&worker->containers, name);

        if (!container)
                return error_setf(reterr, ENOENT, "container not found (\"%s\")", name);
        return container_instance_open_session(pod_container_instance(container), session,
                                               socket_fd, reterr);
}

int pod_worker_attach(PodWorker *worker, const char *name, const SandboxAttach *attach,
                      int socket_fd, Error *reterr) {
        const PodContainer *container = pod_containers_find(&worker->containers, name);

        if (!container)
                return error_setf(reterr, ENOENT, "container %s not found in pod %s", name,
                                  worker->instance.pod->metadata.name);
        return container_instance_attach(pod_container_instance(container), attach, socket_fd,
                                         reterr);
}

int pod_worker_check_instance(const PodWorker *worker, const char *uid, Error *reterr) {
        const Pod *pod = worker->instance.pod;

        if (uid && !object_has_uid(&pod->metadata, uid))
                return error_setf(reterr, ENOENT, "pod not found");
        if (!worker->instance.sandbox || !sandbox_is_connected(worker->instance.sandbox))
                return error_setf(reterr, ENXIO, "pod not found (\"%s_%s\")", pod->metadata.name,
                                  pod->metadata.namespace);
        return 0;
}

int pod_worker_connect_to_port(PodWorker *worker, const char *uid, unsigned port, bool is_ipv6,
                               Error *reterr) {
        cleanup_close int namespace_fd = -EBADF;
        int r = pod_worker_check_instance(worker, uid, reterr);

        if (r < 0)
                return r;
        namespace_fd = sandbox_open_network_namespace(worker->instance.sandbox);
        if (namespace_fd < 0 && namespace_fd != -ENOENT) /* -ENOENT: the node's namespace is used */
                return error_prefixf(reterr, namespace_fd, "the pod's network namespace");
        return port_connection_request(worker->instance.context->sandbox, namespace_fd, port,
                                       is_ipv6, reterr);
}

int pod_worker_network_usage(const PodWorker *worker, NetworkInterfaceUsage *ret) {
        const Sandbox *sandbox = worker->instance.sandbox;
        pid_t pid = sandbox && sandbox_has_network(sandbox) ? sandbox_pid(sandbox) : 0;

        return pid > 0 ? network_usage(pid, ret) : 0;
}

Sandbox *pod_worker_sandbox(const PodWorker *worker) {
        return worker->instance.sandbox;
}

int pod_worker_find_log(PodWorker *worker, const char *name, bool previous, char **ret_directory,
                        unsigned *ret_attempt, bool *ret_is_live, Error *reterr) {
        const PodContainer *container = pod_containers_find(&worker->containers, name);

        if (!container)
                return error_setf(reterr, ENOENT, "container %s is not valid for pod %s", name,
                                  worker->instance.pod->metadata.name);
        return container_instance_find_log(pod_container_instance(container), previous,
                                           ret_directory, ret_attempt, ret_is_live, reterr);
}

/* Includes pods in a back-off: their files and volumes in memory remain. */
bool pod_worker_is_active(const PodWorker *worker) {
        return !pod_worker_is_terminating(worker) && worker->instance.sandbox;
}

int pod_worker_eviction_candidate(const PodWorker *worker, EvictionCandidate *ret) {
        return describe_eviction_candidate(&worker->instance, &worker->containers, ret);
}

bool pod_worker_uses_resources(const PodWorker *worker) {
        PodWorkerState state = worker->sandbox.state;

        if (worker->admission.rejection_reason || pod_worker_has_failed(worker))
                return false;
        if (worker->admission.has_preempted)
                return true;
        return state != WORKER_NO_SANDBOX && state != WORKER_REMOVED;
}

/* This also applies before the pod starts again, for example after a reboot. */
bool pod_worker_holds_ports(PodWorker *worker) {
        PodWorkerState state = worker->sandbox.state;

        if (!pod_has_host_ports(&worker->instance.pod->spec) || worker->admission.rejection_reason)
                return false;
        return (state != WORKER_NO_SANDBOX && state != WORKER_REMOVED) ||
               (pod_worker_should_run(worker) && !pod_worker_has_failed(worker) &&
                pod_has_run_before(&worker->instance));
}

bool pod_worker_awaits_pods(const PodWorker *worker) {
        return worker->awaited.message != NULL;
}

bool pod_worker_awaits_release(const PodWorker *worker) {
        return worker->admission.awaits_release;
}

bool pod_worker_awaits_devices(const PodWorker *worker) {
        return worker->admission.awaits_devices;
}

void pod_worker_on_csi_changed(PodWorker *worker) {
        worker->has_checked_csi = false;
        pod_worker_retry_now(worker);
        pod_instance_mark_dirty(&worker->instance);
}

void pod_worker_on_devices_changed(PodWorker *worker) {
        pod_instance_mark_dirty(&worker->instance);
        for (size_t i = 0; i < worker->containers.n; i++)
                container_machine_retry_references(
                        pod_container_machine(worker->containers.items[i]),
                        may_start_container(worker->containers.items[i], worker));
}

/* ---- termination ---- */

void pod_worker_terminate(PodWorker *worker, const char *reason) {
        uint64_t grace_usec = pod_worker_grace_period(worker);

        if (!worker->instance.is_desired)
                return;
        worker->instance.is_desired = false;
        worker->termination.deletion_time = now_realtime_usec() + grace_usec;
        log_info("Stopping pod %s: %s", worker->instance.description,
                 reason ? reason
                        : "its termination was already in progress when the agent started");
        if (reason)
                record_pod_event(&worker->instance, NULL, POD_EVENT_NORMAL, "Stopping", "%s",
                                 reason);
        pod_worker_retry_now(worker);
        pod_worker_arm_termination(worker, grace_usec);
        pod_instance_mark_dirty(&worker->instance);
}

void pod_worker_shorten_grace(PodWorker *worker) {
        PodTermination *termination = &worker->termination;
        uint64_t grace_usec = pod_worker_grace_period(worker);

        termination->deletion_time =
                MIN(termination->deletion_time, now_realtime_usec() + grace_usec);
        pod_worker_arm_termination(worker, grace_usec);
        if (!pod_worker_sandbox_is_ready(worker))
                return;
        termination->stopping_since = now_awake_usec();
        for (size_t i = 0; i < worker->containers.n; i++)
                pod_container_shorten_grace(worker->containers.items[i]);
}

void pod_worker_delete(PodWorker *worker, int64_t grace_seconds, const char *reason) {
        pod_termination_request(&worker->termination, &worker->instance, grace_seconds);
        pod_worker_terminate(worker, reason);
        if (grace_seconds >= 0)
                pod_worker_shorten_grace(worker);
}

/* ---- containers ---- */

void pod_worker_sync_containers(PodWorker *worker) {
        PodTermination *termination = &worker->termination;
        ContainerOrderInput input;

        pod_containers_step_restart_all(&worker->containers, pod_worker_is_terminating(worker));
        input = (ContainerOrderInput){
                .must_end = pod_worker_must_stop_containers(worker),
                .must_hold = worker->containers.restart_all != RESTART_ALL_NONE,
        };
        if (!input.must_end && pod_worker_should_run(worker))
                termination->stopping_since = 0;
        else if (termination->stopping_since == 0)
                termination->stopping_since = now_awake_usec();
        input.is_late = is_restarting_all(worker) ||
                        pod_is_beyond_grace(termination, pod_worker_grace_period(worker));
        pod_containers_sync(&worker->containers, &input);
}

void pod_worker_recover_containers(PodWorker *worker) {
        for (size_t i = 0; i < worker->containers.n; i++)
                pod_container_recover(worker->containers.items[i], &worker->terminated);
}

/* Containers that a shutdown of the machine stops run again at the next boot, except with
 * restartPolicy Never. */
static bool is_end_to_be_stored(const PodWorker *worker, const PodContainer *container) {
        return !worker->failure.is_until_reboot ||
               container_machine_end_is_final(pod_container_machine(container));
}

void pod_worker_store_terminated_containers(PodWorker *worker) {
        const PodContainers *containers = &worker->containers;
        cleanup_free TerminatedContainer *terminated = NULL;
        size_t n = 0;

        /* All containers that end during a restart of all run again: the earlier checkpoint is
         * kept. */
        if (!pod_worker_is_editable(worker) || !keeps_terminated_containers(worker) ||
            worker->has_unread_checkpoints || containers->restart_all == RESTART_ALL_STOPPING)
                return;
        terminated = calloc(containers->n + 1, sizeof(*terminated));
        for (size_t i = 0; terminated && i < containers->n; i++)
                n += is_end_to_be_stored(worker, containers->items[i]) &&
                     pod_container_describe_end(containers->items[i], &terminated[n]);
        if (terminated)
                terminated_containers_store(&worker->terminated, &worker->instance, terminated, n);
        for (size_t i = 0; i < n; i++)
                terminated_container_done(&terminated[i]);
}

void pod_worker_step(PodWorker *worker) {
        LogSubject subject = pod_instance_log_subject(&worker->instance, NULL);
        LOG_ABOUT(&subject);

        pod_worker_step_lost_sandbox(worker);
        pod_worker_enforce_deadline(worker);
        pod_worker_step_sandbox(worker);
        storage_monitor_step(&worker->storage, !pod_worker_is_terminating(worker) &&
                                                       pod_worker_sandbox_is_ready(worker) &&
                                                       pod_worker_has_processes(worker));
        pod_worker_store_terminated_containers(worker);
        for (size_t i = 0; i < worker->containers.n; i++)
                pod_container_step(worker->containers.items[i]);
        if (update_worker_status(worker) < 0)
                log_error("Cannot compute the status of pod '%s': out of memory",
                          worker->instance.description);
}

void pod_worker_on_images_changed(PodWorker *worker) {
        for (size_t i = 0; i < worker->containers.n; i++) {
                PodContainer *container = worker->containers.items[i];

                container_machine_retry_now(pod_container_machine(container),
                                            may_start_container(container, worker));
        }
}

void pod_worker_on_network_changed(PodWorker *worker) {
        if (!worker->instance.attachment || worker->instance.context->network->not_ready)
                return;
        pod_worker_retry_now(worker);
        pod_instance_mark_dirty(&worker->instance);
}

/* ---- objects and resources ---- */

void pod_worker_update_volumes(PodWorker *worker) {
        if (pod_worker_should_run(worker) && pod_worker_is_set_up(worker) &&
            worker->sandbox.has_volumes)
                pod_volumes_update(&worker->volumes);
}

static void on_volumes_retry(void *userdata) {
        pod_worker_update_volumes(userdata);
}

/* It is retried when objects change: nothing has been started, or only a shim whose set-up needs
 * them. */
static bool is_retried_with_objects(const PodSandboxProgress *sandbox) {
        return sandbox->state == WORKER_RETRY_WAIT &&
               (sandbox->retry_state == WORKER_NO_SANDBOX ||
                (sandbox->retry_state == WORKER_READY && !sandbox->has_volumes));
}

void pod_worker_on_objects_changed(PodWorker *worker) {
        const Pod *pod = worker->instance.pod;
        bool has_csi_volume = pod_has_csi_volume(pod);
        bool may_start = is_retried_with_objects(&worker->sandbox) &&
                         (pod_has_data_volume(pod) || has_csi_volume ||
                          pod->spec.priority_class_name || pod->spec.runtime_class_name);

        pod_worker_update_volumes(worker);
        if (has_csi_volume)
                worker->has_checked_csi = false;
        if (may_start)
                pod_worker_set_state(worker, worker->sandbox.retry_state);
        if (has_csi_volume || may_start)
                pod_instance_mark_dirty(&worker->instance);
        for (size_t i = 0; i < worker->containers.n; i++) {
                PodContainer *container = worker->containers.items[i];

                pod_container_on_objects_changed(container, may_start_container(container, worker));
        }
}

void pod_worker_resize_cgroups(PodWorker *worker) {
        cleanup_free RunningContainer *running = NULL;
        size_t n;

        if (!pod_worker_should_run(worker) || !pod_worker_is_set_up(worker))
                return;
        worker->resizes_started = pod_containers_has_creating(&worker->containers);
        running = pod_containers_list_running(&worker->containers, &n);
        if (running)
                pod_resize_apply(&worker->resize, running, n);
}

static void on_resize_retry(void *userdata) {
        pod_worker_resize_cgroups(userdata);
}

void pod_worker_restore_slices(PodWorker *worker) {
        if (slices_restore_pod(worker->instance.context, worker->instance.pod))
                pod_worker_resize_cgroups(worker);
}

void pod_worker_set_source(PodWorker *worker, ObjectSource source) {
        if (worker->instance.pod->metadata.source == source)
                return;
        worker->instance.pod->metadata.source = source;
        pod_worker_on_objects_changed(worker);
}

/* ---- edits ---- */

char *pod_worker_print_outdated(const PodWorker *worker, const EditPlan *plan) {
        return pod_containers_print_outdated(&worker->containers, plan);
}

void pod_worker_parse_outdated(PodWorker *worker, const char *text) {
        pod_containers_parse_outdated(&worker->containers, text);
}

static void add_ephemeral_containers(PodWorker *worker) {
        int r = pod_containers_add_new(&worker->containers);

        if (r < 0)
                (void) log_error_errno(r, "Cannot add the ephemeral containers of pod '%s'",
                                       worker->instance.description);
}

void pod_worker_apply_edit_take(PodWorker *worker, Pod *pod, const EditPlan *plan) {
        Pod *present = worker->instance.pod, old = *present;

        /* Other parts have pointers to the pod and to its UID, so both keep their addresses. */
        *present = *pod;
        present->metadata.uid = old.metadata.uid;
        old.metadata.uid = pod->metadata.uid;
        *pod = old;
        worker->instance.n_edits++;
        for (size_t i = 0; i < worker->containers.n; i++)
                pod_container_set_spec(worker->containers.items[i],
                                       pod_nth_container(&present->spec, i));
        add_ephemeral_containers(worker);
        active_deadline_stop(&worker->deadline); /* the next step arms it again */
        pod_free(pod);                           /* operations in progress have their own copies */
        report_pod_edit(&worker->instance, plan, EDIT_IN_PLACE, NULL);
        for (size_t i = 0; i < worker->containers.n; i++)
                pod_container_apply_edit(worker->containers.items[i], plan);
        if (edit_changes_resources(plan, NULL)) {
                pod_resize_reset_back_off(&worker->resize);
                pod_worker_resize_cgroups(worker);
        }
        pod_worker_update_volumes(worker);
        pod_worker_set_edit_error(worker, NULL);
        pod_instance_mark_dirty(&worker->instance);
}
