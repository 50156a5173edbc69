/* SPDX-License-Identifier: Apache-2.0 */
/* The driver of the state machine: carries out its requests with bundles, the shim, images, hooks,
 * stops and timers, and passes on the shim's reports. */

#include "agent/pods/container/pod-container.h"

#include "agent/bundle/actual-resources.h"
#include "agent/bundle/block-devices.h"
#include "agent/bundle/device-edits.h"
#include "agent/bundle/log-paths.h"
#include "agent/bundle/pod-paths.h"
#include "agent/model/schema.h"
#include "agent/pods/container/attempt-checkpoint.h"
#include "agent/pods/container/container-attempt.h"
#include "agent/pods/container/container-images.h"
#include "agent/pods/container/container-probes.h"
#include "agent/pods/container/lifecycle-hooks.h"
#include "agent/pods/container/replayed-attempts.h"
#include "agent/pods/pod/event-recorder.h"
#include "agent/pods/pod/pod-edit.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/file.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <signal.h>

/* A container whose creation takes longer no longer counts for the start limiter, unless memory
 * limits it. */
#define START_SLOT_USEC (5 * USEC_PER_SEC)

struct PodContainer {
        ContainerInstance instance;
        const PodContainerCallbacks *callbacks;
        void *userdata;
        ContainerImages images;
        ContainerProbes probes;
        ContainerStopper stopper;
        LifecycleHooks hooks;
        ReplayedAttempts replayed;
        ContainerAttempt last; /* the latest attempt */
        StartSlot start_slot;
        sd_event_source *start_slot_timer;
        sd_event_source *retry_timer; /* back-off timer */
        char *given_devices; /* the hot-pluggable devices of the running attempt, as they were sent;
                                NULL: unknown */
        bool is_outdated;    /* attempts up to this one started from an older spec: */
        unsigned outdated_attempt;
};

/* ---- checkpoint of the attempt ---- */

static void print_container_checkpoint(const PodContainer *c, char text[ATTEMPT_CHECKPOINT_MAX]) {
        const ContainerMachine *machine = c->instance.machine;

        attempt_checkpoint_print(
                &(AttemptCheckpoint){
                        .next_delay_usec = container_machine_next_delay(machine),
                        .stop_signal = c->last.stop_signal,
                        .image_id = c->last.image_id,
                        .generation = c->last.generation,
                        .has_post_started = container_machine_has_post_started(machine),
                        /* Done even without a probe, because an edit may add one while the attempt
                         * runs. */
                        .has_started = container_probes_have_started(&c->probes),
                        .is_ready = container_probes_readiness_passed(&c->probes),
                        .is_killed = container_machine_is_killed(machine),
                        .user = c->last.user,
                },
                text);
}

static void update_container_checkpoint(void *userdata) {
        const PodContainer *c = userdata;
        const PodInstance *pod = c->instance.pod;
        char checkpoint[ATTEMPT_CHECKPOINT_MAX], id[CONTAINER_ID_SIZE];
        int r;

        if (!pod->sandbox)
                return;
        print_container_checkpoint(c, checkpoint);
        container_instance_print_id(&c->instance, id);
        r = sandbox_set_container_note(pod->sandbox, id, checkpoint);
        if (r < 0)
                (void) log_warning_errno(r, "Cannot update the checkpoint of container '%s/%s'",
                                         pod->description, c->instance.spec->name);
}

static void kill_container_attempt(const OptionalInt *grace, const char *why, void *userdata) {
        PodContainer *c = userdata;

        if (container_stop_kill(&c->stopper, grace, why))
                update_container_checkpoint(c);
}

static const ContainerProbesCallbacks container_probes_callbacks = {
        .on_changed = update_container_checkpoint,
        .kill = kill_container_attempt,
};

/* ---- start slots ---- */

static void driver_acquire_start_slot(void *userdata) {
        PodContainer *c = userdata;

        start_limiter_acquire(&c->instance.pod->context->start_limiter, &c->start_slot);
}

static void driver_release_start_slot(void *userdata) {
        PodContainer *c = userdata;

        c->start_slot_timer = sd_event_source_disable_unref(c->start_slot_timer);
        start_limiter_release(&c->instance.pod->context->start_limiter, &c->start_slot);
}

static int on_start_slot_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        driver_release_start_slot(userdata);
        return 0;
}

/* A few hanging runtimes must not prevent all other pods from starting. But on a machine with
 * little memory they keep their slots until the shim kills them, because runtimes that are merely
 * slow would otherwise use up the memory. */
static void arm_start_slot_timer(PodContainer *c) {
        c->start_slot_timer = sd_event_source_disable_unref(c->start_slot_timer);
        if (c->instance.pod->context->start_limiter.limit.is_of_memory)
                return;
        (void) sd_event_add_time_relative(c->instance.pod->context->event, &c->start_slot_timer,
                                          CLOCK_BOOTTIME, START_SLOT_USEC, USEC_PER_SEC,
                                          on_start_slot_timeout, c);
}

static void on_start_slot_acquired(void *userdata) {
        PodContainer *c = userdata;

        container_machine_on_start_slot(c->instance.machine);
}

/* ---- running an attempt ---- */

/* If the pod's run directory was removed, its sandbox cannot be repaired; a new one is created. */
static int check_pod_run_dir(const PodContainer *c, Error *reterr) {
        const PodInstance *pod = c->instance.pod;
        cleanup_free char *fstab = pod_fstab_path(pod->context->bundle, pod->pod->metadata.uid);

        if (!fstab)
                return -ENOMEM;
        if (access(fstab, F_OK) >= 0 || errno != ENOENT)
                return 0;
        c->callbacks->abandon_sandbox("its run-time directory was removed", c->userdata);
        return error_setf(reterr, ENOENT, "%s does not exist any more", fstab);
}

/* Calls PreStartContainer if a plugin requires it, and gets the response to Allocate. If the
 * response arrives later, the container is started then. */
static int prepare_devices(const PodContainer *c, DeviceEdits *ret, Error *reterr) {
        const PodInstance *pod = c->instance.pod;
        DeviceManager *devices = pod->context->devices;
        const char *uid = pod->pod->metadata.uid, *name = c->instance.spec->name;
        int r;

        if (!devices || c->instance.spec->resources.limits.extended.n == 0)
                return 0;
        r = device_manager_prepare_start(devices, uid, name, reterr);
        if (r == -EINPROGRESS)
                return error_setf(reterr, CONTAINER_AWAITED, "waiting for the device plugin");
        if (r < 0)
                return r == -ENOMEM ? r : -CONTAINER_CONFIG_ERROR;
        return device_manager_collect_edits(devices, uid, name, ret);
}

/* ---- hot-pluggable devices ---- */

static int print_live_devices(const PodContainer *c, char ***ret) {
        const PodInstance *pod = c->instance.pod;
        cleanup_with(device_edits_done) DeviceEdits edits = { 0 };
        int r = device_manager_collect_edits(pod->context->devices, pod->pod->metadata.uid,
                                             c->instance.spec->name, &edits);

        return r < 0 ? r : device_edits_print_live(&edits, ret);
}

static void send_live_devices(PodContainer *c, char *const *devices) {
        const PodInstance *pod = c->instance.pod;
        char id[CONTAINER_ID_SIZE];
        int r;

        container_instance_print_id(&c->instance, id);
        r = sandbox_set_container_devices(pod->sandbox, id, devices);
        if (r == -ENOTSUP)
                log_warning("Container '%s/%s' gets its devices when its pod is replaced: its shim "
                            "is of an older version",
                            pod->description, c->instance.spec->name);
        else if (r < 0)
                (void) log_warning_errno(r, "Cannot change the devices of container '%s/%s'",
                                         pod->description, c->instance.spec->name);
}

/* Level-triggered: the list is sent whenever it differs from the shim's list. */
static void update_live_devices(PodContainer *c) {
        const PodInstance *pod = c->instance.pod;
        cleanup_strv char **devices = NULL;
        cleanup_free char *text = NULL;

        if (!pod->context->devices || c->instance.spec->resources.limits.extended.n == 0 ||
            !pod->sandbox || !container_machine_is_running(c->instance.machine) ||
            !device_manager_has_live(pod->context->devices, pod->pod->metadata.uid,
                                     c->instance.spec->name))
                return;
        text = print_live_devices(c, &devices) < 0 ? NULL : text_join(devices, "\n");
        if (!text || streq_ptr(text, c->given_devices))
                return;
        send_live_devices(c, devices);
        free(c->given_devices);
        c->given_devices = TAKE_PTR(text);
}

/* The devices from config.json. */
static int remember_first_devices(PodContainer *c, const DeviceEdits *edits) {
        cleanup_strv char **devices = NULL;
        int r = device_edits_print_live(edits, &devices);

        if (r < 0)
                return r;
        free(c->given_devices);
        c->given_devices = text_join(devices, "\n");
        return c->given_devices ? 0 : -ENOMEM;
}

static int prepare_attempt(PodContainer *c, unsigned attempt, Bundle *ret_bundle,
                           char ***ret_journal_fields, Error *reterr) {
        const PodInstance *pod = c->instance.pod;
        cleanup_with(device_edits_done) DeviceEdits edits = { 0 };
        BundleConfig config = *pod->context->bundle;
        int r;

        for (size_t i = 0; pod->attachment && i < N_ELEMENTS(config.pod_ips); i++)
                config.pod_ips[i] = network_attachment_address(pod->attachment, i);
        config.volume_images = c->images.volumes;
        config.sandbox_pid = sandbox_pid(pod->sandbox);
        config.has_old_shim = !sandbox_prepares_volumes(pod->sandbox);
        r = check_pod_run_dir(c, reterr);
        if (r >= 0)
                r = prepare_devices(c, &edits, reterr);
        if (r >= 0)
                r = add_block_devices(&config, pod->pod, c->instance.spec, &edits, reterr);
        if (r < 0)
                return r;
        r = remember_first_devices(c, &edits);
        if (r < 0)
                return r;
        config.device_edits = &edits;
        config.cdi_names = edits.cdi_devices;
        r = bundle_prepare_container(&config, pod->pod, c->instance.spec, attempt, c->images.image,
                                     sandbox_pid(pod->sandbox), ret_bundle, reterr);
        if (r < 0)
                return r;
        return bundle_journal_fields(&config, pod->pod, c->instance.spec, ret_bundle->id,
                                     ret_journal_fields);
}

static int run_attempt(PodContainer *c, unsigned attempt, Error *reterr) {
        const Container *spec = c->instance.spec;
        const char *target = spec->target_container_name;
        char target_id[CONTAINER_ID_SIZE];
        cleanup_with(bundle_done) Bundle bundle = { 0 };
        cleanup_strv char **journal_fields = NULL;
        char checkpoint[ATTEMPT_CHECKPOINT_MAX];
        int r;

        if (attempt > 0)
                c->callbacks->restore_slices(c->userdata);
        if (target) {
                r = container_instance_print_target_id(
                        c->callbacks->find_container(target, c->userdata), target, target_id,
                        reterr);
                if (r < 0)
                        return r;
        }
        r = prepare_attempt(c, attempt, &bundle, &journal_fields, reterr);
        if (r < 0)
                return r;
        r = container_attempt_start(&c->last, spec, c->images.image,
                                    c->callbacks->generation(c->userdata));
        if (r < 0)
                return r;
        container_attempt_load_user(&c->last, &c->instance, attempt);
        print_container_checkpoint(c, checkpoint);
        container_stopper_reset(&c->stopper);
        arm_start_slot_timer(c);
        r = sandbox_run_container(
                c->instance.pod->sandbox,
                &(SandboxContainerConfig){
                        .id = bundle.id,
                        .name = spec->name,
                        .attempt = attempt,
                        .bundle = bundle.directory,
                        .log = bundle.log,
                        .journal_fields = journal_fields,
                        .events_file = bundle.events_file,
                        .note = checkpoint,
                        .has_input = spec->has_stdin,
                        .keeps_early = container_instance_is_ephemeral(&c->instance),
                        .has_terminal = spec->tty,
                        .target = target ? target_id : NULL,
                });
        if (r == -ENOTSUP)
                return error_setf(reterr, ENOTSUP,
                                  "the shim is too old for target containers; replace the pod");
        return r;
}

static int driver_run_attempt(void *userdata, unsigned attempt, Error *reterr) {
        PodContainer *c = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r = run_attempt(c, attempt, &error);

        if (r < 0 && r != -CONTAINER_AWAITED)
                record_pod_event(c->instance.pod, c->instance.spec->name, POD_EVENT_WARNING,
                                 "Failed", "Error: %s", error_message(&error, r));
        if (r < 0 && reterr)
                error_move(reterr, &error);
        return r;
}

/* Removes an attempt's remains through the shim, and the logs of the attempts before it; its own
 * log stays for "logs --previous". */
static void driver_remove_attempt(void *userdata, unsigned attempt) {
        const PodContainer *c = userdata;
        const PodInstance *pod = c->instance.pod;
        cleanup_with(bundle_done) Bundle bundle = { 0 };
        const char *remains[2];

        bundle_remove_logs_before(pod->context->bundle, pod->pod, c->instance.spec->name, attempt);
        if (!pod->sandbox || bundle_attempt_paths(pod->context->bundle, pod->pod,
                                                  c->instance.spec->name, attempt, &bundle) < 0)
                return;
        for (size_t i = 0; i < N_ELEMENTS(remains); i++)
                remains[i] = bundle.remains[i];
        (void) sandbox_remove_container(pod->sandbox, bundle.id, remains, N_ELEMENTS(remains));
}

/* ---- back-off ---- */

static int on_container_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        PodContainer *c = userdata;

        container_machine_on_retry(c->instance.machine, c->callbacks->may_start(c, c->userdata));
        return 0;
}

static void driver_arm_retry(void *userdata, uint64_t delay_usec) {
        PodContainer *c = userdata;
        const PodInstance *pod = c->instance.pod;
        int r;

        c->retry_timer = sd_event_source_disable_unref(c->retry_timer);
        r = sd_event_add_time_relative(pod->context->event, &c->retry_timer, CLOCK_BOOTTIME,
                                       delay_usec, 0, on_container_retry, c);
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the back-off timer of container '%s/%s'",
                                       pod->description, c->instance.spec->name);
}

static void driver_disarm_retry(void *userdata) {
        PodContainer *c = userdata;

        c->retry_timer = sd_event_source_disable_unref(c->retry_timer);
}

/* ---- the rest of the driver ---- */

static ContainerStop describe_container_stop(const PodContainer *c, unsigned attempt,
                                             bool for_good) {
        return (ContainerStop){
                .attempt = attempt,
                .for_good = for_good,
                .pod_grace_usec = c->callbacks->remaining_grace_usec(c->userdata),
                .signal = c->last.stop_signal,
        };
}

static void driver_stop_container(void *userdata, unsigned attempt, bool for_good) {
        PodContainer *c = userdata;
        ContainerStop stop = describe_container_stop(c, attempt, for_good);

        container_stop(&c->stopper, &stop);
}

static void driver_shorten_grace(void *userdata) {
        PodContainer *c = userdata;
        const ContainerMachine *machine = c->instance.machine;
        unsigned attempt = container_machine_attempt(machine);
        ContainerStop stop = describe_container_stop(c, attempt, /* for_good= */ true);

        container_stop_shorten_grace(&c->stopper, &stop,
                                     container_machine_holds_stop_signal(machine));
}

static void driver_run_hook(void *userdata, LifecycleHook hook, unsigned attempt, bool for_good) {
        PodContainer *c = userdata;
        ContainerStop stop = describe_container_stop(c, attempt, for_good);

        if (hook == HOOK_PRE_STOP && c->callbacks->is_restarting_all(c->userdata)) {
                lifecycle_hooks_cancel(&c->hooks);
                container_machine_on_hook_done(c->instance.machine, NULL);
                return;
        }
        lifecycle_hooks_run(&c->hooks, hook, &stop);
}

static void driver_cancel_hook(void *userdata) {
        PodContainer *c = userdata;

        lifecycle_hooks_abandon(&c->hooks);
}

static void driver_request_images(void *userdata) {
        PodContainer *c = userdata;

        container_images_request(&c->images);
}

static void driver_cancel_image_request(void *userdata) {
        PodContainer *c = userdata;

        container_images_cancel(&c->images);
}

static void driver_status_changed(void *userdata) {
        pod_instance_mark_dirty(((const PodContainer *) userdata)->instance.pod);
}

static const ContainerDriver pod_container_driver = {
        .request_images = driver_request_images,
        .cancel_image_request = driver_cancel_image_request,
        .acquire_start_slot = driver_acquire_start_slot,
        .release_start_slot = driver_release_start_slot,
        .run = driver_run_attempt,
        .run_hook = driver_run_hook,
        .cancel_hook = driver_cancel_hook,
        .stop = driver_stop_container,
        .shorten_grace = driver_shorten_grace,
        .remove_attempt = driver_remove_attempt,
        .arm_retry = driver_arm_retry,
        .disarm_retry = driver_disarm_retry,
        .status_changed = driver_status_changed,
};

/* ---- the container ---- */

int pod_container_new(const PodInstance *pod, const Container *spec,
                      const PodContainerCallbacks *callbacks, void *userdata, PodContainer **ret) {
        const PodSpec *pod_spec = &pod->pod->spec;
        ContainerRestartPolicy policy = container_restart_policy(pod_spec, spec);
        PodContainer *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return -ENOMEM;
        c->instance = (ContainerInstance){ .pod = pod, .spec = spec };
        c->callbacks = callbacks;
        c->userdata = userdata;
        c->images.container = &c->instance;
        c->probes.container = &c->instance;
        c->probes.callbacks = &container_probes_callbacks;
        c->probes.userdata = c;
        c->stopper.container = &c->instance;
        c->hooks.container = &c->instance;
        c->hooks.stopper = &c->stopper;
        c->hooks.on_post_start_done = update_container_checkpoint;
        c->hooks.userdata = c;
        c->start_slot = (StartSlot){ .on_acquired = on_start_slot_acquired, .userdata = c };
        r = container_machine_new(
                &pod->pod->metadata, spec, &policy,
                pod_spec->init_containers.n > 0 ? "PodInitializing" : "ContainerCreating",
                &pod->context->back_off, &pod_container_driver, c, &c->instance.machine);
        if (r < 0) {
                free(c);
                return r;
        }
        *ret = c;
        return 0;
}

PodContainer *pod_container_free(PodContainer *c) {
        if (!c)
                return NULL;
        container_probes_done(&c->probes);
        lifecycle_hooks_cancel(&c->hooks);
        start_limiter_release(&c->instance.pod->context->start_limiter, &c->start_slot);
        container_images_done(&c->images);
        container_attempt_done(&c->last);
        sd_event_source_disable_unref(c->retry_timer);
        sd_event_source_disable_unref(c->start_slot_timer);
        free(c->given_devices);
        replayed_attempts_done(&c->replayed);
        container_machine_free(c->instance.machine);
        free(c);
        return NULL;
}

const ContainerInstance *pod_container_instance(const PodContainer *c) {
        return &c->instance;
}

ContainerMachine *pod_container_machine(const PodContainer *c) {
        return c->instance.machine;
}

ContainerOrderEntry pod_container_order_entry(const PodContainer *c) {
        const ContainerMachine *machine = c->instance.machine;

        return (ContainerOrderEntry){
                .role = container_role(&c->instance.pod->pod->spec, c->instance.spec),
                .has_run = c->last.has_run,
                .has_started = container_machine_has_started(machine) &&
                               container_probes_have_started(&c->probes),
                .is_waiting = container_machine_is_waiting(machine),
                .holds_next = container_machine_awaits_post_start(machine),
                .is_finished = container_machine_is_finished(machine),
                .has_succeeded = container_machine_has_succeeded(machine),
        };
}

void pod_container_step(PodContainer *c) {
        update_live_devices(c);
        container_probes_step(&c->probes);
}

void pod_container_reset(PodContainer *c) {
        if (container_instance_is_ephemeral(&c->instance) &&
            container_machine_has_any_attempt(c->instance.machine))
                return;
        container_machine_stop(c->instance.machine);
        container_machine_reset(c->instance.machine);
        c->last.has_run = false;
}

void pod_container_on_new_sandbox(PodContainer *c) {
        c->last.has_run = false;
        if (container_role(&c->instance.pod->pod->spec, c->instance.spec) == ROLE_INIT)
                container_machine_reset(c->instance.machine);
}

void pod_container_on_objects_changed(PodContainer *c, bool sandbox_is_ready) {
        container_machine_retry_references(c->instance.machine, sandbox_is_ready);
        container_images_on_objects_changed(&c->images);
}

void pod_container_shorten_grace(PodContainer *c) {
        if (container_machine_is_stopping(c->instance.machine))
                driver_shorten_grace(c);
}

/* ---- events of the shim ---- */

static void report_log_ended(const PodContainer *c, unsigned attempt) {
        const PodContext *context = c->instance.pod->context;
        cleanup_free char *log_dir = pod_log_dir(context->bundle, c->instance.pod->pod);
        cleanup_free char *directory = log_dir ? path_join(log_dir, c->instance.spec->name) : NULL;

        if (directory)
                context->on_log_ended(directory, attempt, context->userdata);
}

/* Adds the termination message. */
static void report_attempt_exited(PodContainer *c, unsigned attempt, const ContainerExit *end) {
        const PodInstance *instance = c->instance.pod;
        const char *name = c->instance.spec->name;
        const ObjectMeta *pod = &instance->pod->metadata;
        cleanup_free char *message =
                bundle_termination_message(instance->context->bundle, instance->pod,
                                           c->instance.spec, attempt, end->exit_code != 0);
        ContainerExit with_message = *end;

        with_message.message = message;
        /* A container whose pod has started to terminate in this turn of the loop is not restarted.
         */
        if (c->callbacks->must_stop(c->userdata))
                container_machine_disable_restart(c->instance.machine);
        container_machine_on_exited(c->instance.machine, attempt, &with_message);
        if (attempt == container_machine_attempt(c->instance.machine) &&
            container_machine_is_in_back_off(c->instance.machine))
                record_pod_event(instance, name, POD_EVENT_WARNING, "BackOff",
                                 "Back-off restarting failed container %s in pod %s_%s(%s)", name,
                                 pod->name, pod->namespace, pod->uid);
}

/* The kubelet reports a container as created before it calls the runtime. */
static void record_container_event(const PodContainer *c, const ShimEvent *event) {
        const PodInstance *pod = c->instance.pod;
        const char *name = c->instance.spec->name;

        if (event->type == SHIM_EVENT_STARTED || event->runtime_failed)
                record_pod_event(pod, name, POD_EVENT_NORMAL, "Created", "Container created");
        if (event->type == SHIM_EVENT_STARTED)
                record_pod_event(pod, name, POD_EVENT_NORMAL, "Started", "Container started");
        else if (event->type == SHIM_EVENT_START_FAILED)
                record_pod_event(pod, name, POD_EVENT_WARNING, "Failed", "Error: %s",
                                 strna(event->message));
}

static void process_container_event(PodContainer *c, const ShimEvent *event) {
        PodContext *context = c->instance.pod->context;
        ContainerExit end = { .exit_code = event->exit_code,
                              .oom_killed = event->oom_killed,
                              .started_at = event->started_at,
                              .finished_at = event->finished_at };

        if (event->attempt == container_machine_attempt(c->instance.machine))
                record_container_event(c, event);
        if (event->type != SHIM_EVENT_EXITED)
                c->callbacks->restore_slices(c->userdata);
        if (event->type == SHIM_EVENT_STARTED) {
                context->n_containers_started++;
                context->n_containers_restarted += event->attempt > 0;
                container_machine_on_started(c->instance.machine, event->attempt,
                                             event->started_at);
        } else if (event->type == SHIM_EVENT_START_FAILED) {
                context->n_start_errors++;
                container_machine_on_start_failed(c->instance.machine, event->attempt,
                                                  event->runtime_failed, strna(event->message));
        } else if (event->type == SHIM_EVENT_EXITED) {
                report_log_ended(c, event->attempt);
                report_attempt_exited(c, event->attempt, &end);
        }
}

void pod_container_on_event(PodContainer *c, const ShimEvent *event) {
        unsigned obsolete;

        if (!event->replayed)
                process_container_event(c, event);
        else if (replayed_attempts_add(&c->replayed, event, &obsolete))
                driver_remove_attempt(c, obsolete);
}

/* ---- after a connection to the shim ---- */

/* Repeats the event for the current attempt. An attempt that has ended was started before. */
static void process_latest_replayed(PodContainer *c) {
        const ReplayedAttempt *latest = &c->replayed.latest;
        ContainerMachine *machine = c->instance.machine;

        if (latest->type == SHIM_EVENT_STARTING)
                return; /* its result follows */
        if (latest->type == SHIM_EVENT_START_FAILED)
                container_machine_on_start_failed(machine, latest->attempt, latest->runtime_failed,
                                                  strna(latest->message));
        else
                container_machine_on_started(machine, latest->attempt, latest->exit.started_at);
        if (latest->type != SHIM_EVENT_EXITED)
                return;
        report_log_ended(c, latest->attempt);
        report_attempt_exited(c, latest->attempt, &latest->exit);
}

/* A restarted agent found the shim: the machine enters the container's state. */
static void adopt_container_attempt(PodContainer *c) {
        ReplayedAttempts *replayed = &c->replayed;
        ContainerMachine *machine = c->instance.machine;
        AttemptCheckpoint checkpoint;

        attempt_checkpoint_parse(strna(replayed->latest.note), &checkpoint);
        container_attempt_adopt_take(&c->last, &checkpoint, replayed->latest.attempt);
        replayed->latest.exit.is_found = true;
        container_machine_adopt(machine, replayed->latest.attempt, checkpoint.next_delay_usec);
        if (checkpoint.has_post_started)
                container_machine_adopt_post_started(machine);
        if (checkpoint.is_killed)
                container_machine_adopt_killed(machine);
        container_probes_adopt(&c->probes, &checkpoint);
        if (replayed->previous.type == SHIM_EVENT_EXITED && replayed->previous.is_known)
                container_machine_adopt_last(machine, replayed->previous.attempt,
                                             &replayed->previous.exit);
        if (replayed->latest.type == SHIM_EVENT_STARTING)
                container_machine_adopt_creating(machine);
        process_latest_replayed(c);
}

/* The connection broke and was restored: events and requests in between may have been lost. */
static void reconcile_container_attempt(PodContainer *c) {
        ContainerMachine *machine = c->instance.machine;
        unsigned attempt = container_machine_attempt(machine);

        if (!container_machine_has_process(machine))
                return;
        if (c->replayed.latest.is_known && c->replayed.latest.attempt == attempt)
                process_latest_replayed(c);
        else
                container_machine_on_start_failed(machine, attempt, /* by_runtime= */ false,
                                                  "the connection to the shim broke");
}

void pod_container_on_synced(PodContainer *c, bool is_found,
                             const TerminatedContainers *terminated) {
        const ReplayedAttempt *previous = &c->replayed.previous;

        (void) text_replace(&c->given_devices, NULL);
        if (previous->is_known && !previous->is_deleted)
                driver_remove_attempt(c, previous->attempt);
        if (!is_found)
                reconcile_container_attempt(c);
        else if (c->replayed.latest.is_known)
                adopt_container_attempt(c);
        else
                pod_container_recover(c, terminated);
        replayed_attempts_done(&c->replayed);
}

bool pod_container_has_replayed(const PodContainer *c) {
        return c->replayed.latest.is_known;
}

void pod_container_on_sandbox_lost(PodContainer *c, uint64_t now) {
        replayed_attempts_done(&c->replayed);
        if (container_machine_has_process(c->instance.machine))
                report_log_ended(c, container_machine_attempt(c->instance.machine));
        container_machine_on_sandbox_lost(c->instance.machine, now);
}

bool pod_container_describe_end(const PodContainer *c, TerminatedContainer *ret) {
        char checkpoint[ATTEMPT_CHECKPOINT_MAX];

        print_container_checkpoint(c, checkpoint);
        return container_describe_end(&c->instance, checkpoint, ret);
}

void pod_container_recover(PodContainer *c, const TerminatedContainers *terminated) {
        if (container_machine_is_waiting(c->instance.machine))
                container_attempt_recover(&c->last, &c->instance, terminated);
}

unsigned pod_container_generation(const PodContainer *c) {
        return c->last.generation;
}

void pod_container_reset_old_generation(PodContainer *c, unsigned generation) {
        if (c->last.has_run && c->last.generation < generation &&
            !container_machine_has_process(c->instance.machine))
                pod_container_reset(c);
}

/* ---- edits ---- */

bool pod_container_has_current_attempt(const PodContainer *c) {
        const ContainerMachine *machine = c->instance.machine;

        return container_machine_has_run(machine, container_machine_attempt(machine));
}

bool pod_container_is_outdated(const PodContainer *c) {
        return c->is_outdated &&
               container_machine_has_run(c->instance.machine, c->outdated_attempt);
}

bool pod_container_awaits_edit(const PodContainer *c) {
        unsigned attempt = container_machine_attempt(c->instance.machine);
        unsigned started = pod_container_has_current_attempt(c) ? attempt : attempt - 1;

        return c->is_outdated && started <= c->outdated_attempt;
}

void pod_container_set_outdated(PodContainer *c, unsigned attempt) {
        c->is_outdated = true;
        c->outdated_attempt = attempt;
}

void pod_container_set_spec(PodContainer *c, const Container *spec) {
        const Container *former = c->instance.spec;
        ContainerRestartPolicy policy = container_restart_policy(&c->instance.pod->pod->spec, spec);

        c->instance.spec = spec;
        container_machine_set_spec(c->instance.machine, spec, &policy);
        container_probes_on_spec_changed(&c->probes, former);
}

void pod_container_apply_edit(PodContainer *c, const EditPlan *plan) {
        const char *name = c->instance.spec->name;
        ContainerMachine *machine = c->instance.machine;

        report_pod_edit(c->instance.pod, plan, EDIT_IN_PLACE, name);
        report_pod_edit(c->instance.pod, plan, EDIT_RESTART_CONTAINER, name);
        if (edit_plan_container_effect(plan, name) == EDIT_RESTART_CONTAINER) {
                if (pod_container_has_current_attempt(c))
                        pod_container_set_outdated(c, container_machine_attempt(machine));
                container_machine_restart_edited(machine);
        } else if (edit_changes_resources(plan, name))
                container_machine_reset_back_off(machine);
}

/* ---- status ---- */

static void replace_status_text(char **text, const char *value) {
        free(*text);
        *text = strdup(value);
}

/* A container that has not started yet waits for the same event as the pod. */
static void fill_waiting_message(const PodContainer *c, const PodContainerStatusInput *input,
                                 ContainerStatus *status) {
        if (!container_machine_is_waiting(c->instance.machine) || status->state.message)
                return;
        if (input->awaited_pods) {
                replace_status_text(&status->state.reason, "WaitingForPods");
                status->state.message = strdup(input->awaited_pods);
        } else if (input->last_error)
                status->state.message = strdup(input->last_error);
        else if (input->waits_for_restart_all) {
                replace_status_text(&status->state.reason, "RestartingAllContainers");
                status->state.message =
                        strdup("The container is removed because RestartAllContainers in place");
        }
}

/* The cgroups match the spec unless a resize has failed or is due. */
static int fill_container_resources(const PodContainer *c, const PodContainerStatusInput *input,
                                    unsigned attempt, ContainerStatus *ret) {
        static const ResourceRequirements none = { 0 };
        const PodInstance *pod = c->instance.pod;
        const ResourceRequirements *spec = &c->instance.spec->resources;
        const RunningContainer running = { c->instance.spec, attempt };
        bool may_differ = container_machine_is_running(c->instance.machine) &&
                          (input->has_resize_error || pod_container_is_outdated(c));
        int r;

        if (!may_differ && schema_equal(&resource_requirements_schema, spec, &none))
                return 0;
        ret->resources = calloc(1, sizeof(*ret->resources));
        r = ret->resources ? schema_copy(&resource_requirements_schema, ret->resources, spec)
                           : -ENOMEM;
        if (r < 0 || !may_differ)
                return r;
        return bundle_read_actual_resources(pod->context->bundle, pod->pod, &running,
                                            ret->resources);
}

static int fill_attempt_status(PodContainer *c, const PodContainerStatusInput *input,
                               ContainerStatus *ret) {
        const ContainerMachine *machine = c->instance.machine;
        unsigned attempt = container_machine_attempt(machine);
        int r;

        if (!container_machine_has_run(machine, attempt) && attempt > 0)
                attempt--;
        r = container_attempt_fill_status(&c->last, &c->instance, attempt, ret);
        if (r < 0)
                return r;
        return fill_container_resources(c, input, attempt, ret);
}

/* As in the kubelet, sidecars count, but other init containers do not. */
static int fill_device_status(const PodContainer *c, ContainerStatus *ret) {
        const PodInstance *pod = c->instance.pod;
        const Container *spec = c->instance.spec;

        if (!pod->context->devices || spec->resources.limits.extended.n == 0 ||
            container_role(&pod->pod->spec, spec) == ROLE_INIT)
                return 0;
        return device_manager_container_status(pod->context->devices, pod->pod->metadata.uid,
                                               spec->name, &ret->allocated_resources_status);
}

int pod_container_status(PodContainer *c, const PodContainerStatusInput *input,
                         ContainerStatus *ret) {
        const Pod *pod = c->instance.pod->pod;
        const Container *spec = c->instance.spec;
        int r = container_machine_status(c->instance.machine, pod->metadata.uid, ret);

        if (r < 0)
                return r;
        r = container_attempt_fill_image(&c->last, &c->instance, ret);
        if (r < 0)
                return r;
        ret->started = ret->started && container_probes_have_started(&c->probes);
        ret->ready = ret->ready && container_probes_are_ready(&c->probes);
        if (container_instance_is_ephemeral(&c->instance)) /* the pod does not depend on it */
                ret->ready = false;
        /* An init container is ready when it has completed. */
        if (container_role(&pod->spec, spec) == ROLE_INIT)
                ret->ready = container_machine_has_succeeded(c->instance.machine);
        fill_waiting_message(c, input, ret);
        if (ret->state.kind == STATE_WAITING && !ret->state.message)
                ret->state.message = container_images_progress(&c->images);
        r = fill_device_status(c, ret);
        if (r < 0)
                return r;
        return ret->container_id ? fill_attempt_status(c, input, ret) : 0;
}

void pod_container_list_images(const PodContainer *c, ImageSet *ret) {
        container_attempt_list_images(&c->last, &c->instance, ret);
}

void pod_container_for_each_probe(const PodContainer *c, probe_sample_t each, void *userdata) {
        container_probes_for_each_sample(&c->probes, each, userdata);
}

void pod_container_dump(const PodContainer *c, FILE *out) {
        container_machine_dump(c->instance.machine, out);
        if (c->is_outdated)
                dump_line(out, 3, "outdated: attempts up to %u", c->outdated_attempt);
        if (c->start_slot.is_waiting || c->start_slot.is_held)
                dump_line(out, 3, "start slot: %s", c->start_slot.is_held ? "in use" : "queued");
        dump_timer(out, 3, "start slot is released", c->start_slot_timer);
        dump_timer(out, 3, "back-off ends", c->retry_timer);
        if (c->images.request)
                dump_line(out, 3, "image: requested%s", c->images.is_pulling ? ", pulling" : "");
        if (c->hooks.run)
                dump_line(out, 3, "hook: %s runs",
                          c->hooks.kind == HOOK_PRE_STOP ? "preStop" : "postStart");
        container_probes_dump(&c->probes, out);
}

void pod_container_dump_queued(const void *container, FILE *out) {
        const PodContainer *c = container;

        dump_line(out, 2, "container: %s/%s", c->instance.pod->description, c->instance.spec->name);
}
