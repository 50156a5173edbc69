/* SPDX-License-Identifier: Apache-2.0 */
/* What containers ask of the world, done for them: bundles, the shim, timers. Images are in
 * images.c. */

#include "agent/bundle/logs.h"
#include "agent/bundle/paths.h"
#include "agent/model/signals.h"
#include "agent/pods/event-recorder.h"
#include "agent/pods/pod-worker-private.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/strv.h"

/* Whoever is created for longer lets the next one begin. */
#define START_SLOT_USEC (5 * USEC_PER_SEC)

static void driver_acquire_start_slot(void *userdata) {
        PodContainer *c = userdata;

        start_limiter_acquire(&c->pod->context->start_limiter, &c->start_slot);
}

static void driver_release_start_slot(void *userdata) {
        PodContainer *c = userdata;

        c->start_slot_timer = sd_event_source_disable_unref(c->start_slot_timer);
        start_limiter_release(&c->pod->context->start_limiter, &c->start_slot);
}

static int on_start_slot_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        driver_release_start_slot(userdata);
        return 0;
}

/* A few runtimes that hang must not keep all other pods from starting. */
static void arm_start_slot_timer(PodContainer *c) {
        c->start_slot_timer = sd_event_source_disable_unref(c->start_slot_timer);
        (void) sd_event_add_time_relative(c->pod->context->event, &c->start_slot_timer,
                                          CLOCK_BOOTTIME, START_SLOT_USEC, USEC_PER_SEC,
                                          on_start_slot_timeout, c);
}

/* The pod's word, or the image's. 0: neither has one. */
static int find_stop_signal(const PodContainer *c) {
        if (c->spec->lifecycle && c->spec->lifecycle->stop_signal)
                return signal_from_name(c->spec->lifecycle->stop_signal);
        return c->image->stop_signal ? signal_from_name(c->image->stop_signal) : 0;
}

/* What is asked later about the attempt, when the image may be another. */
static int remember_attempt_image(PodContainer *c) {
        char *image_id = strdup(c->image->digest), *image_name = strdup(c->spec->image);

        if (!image_id || !image_name) {
                free(image_id);
                free(image_name);
                return -ENOMEM;
        }
        free(c->image_id);
        c->image_id = image_id;
        free(c->image_name);
        c->image_name = image_name;
        c->stop_signal = find_stop_signal(c);
        return 0;
}

/* Somebody may have emptied the run directory. What the pod's shim holds cannot be made whole
 * again; another one can. */
static int check_pod_run_dir(PodWorker *pod, Error *reterr) {
        cleanup_free char *fstab = pod_fstab_path(pod->context->bundle, pod->pod->metadata.uid);

        if (!fstab)
                return -ENOMEM;
        if (access(fstab, F_OK) >= 0 || errno != ENOENT)
                return 0;
        pod_worker_abandon_sandbox(pod, "its run-time directory was removed");
        return error_setf(reterr, ENOENT, "%s is not there any more", fstab);
}

static int run_attempt(PodContainer *c, unsigned attempt, Error *reterr) {
        PodWorker *pod = c->pod;
        cleanup_with(bundle_done) Bundle bundle = { 0 };
        cleanup_strv char **journal_fields = NULL;
        BundleConfig config = *pod->context->bundle;
        char checkpoint[ATTEMPT_CHECKPOINT_MAX];
        int r;

        for (size_t i = 0; pod->attachment && i < N_ELEMENTS(config.pod_ips); i++)
                config.pod_ips[i] = network_attachment_address(pod->attachment, i);
        config.volume_images = c->volume_images;
        config.sandbox_pid = sandbox_pid(pod->sandbox);
        if (attempt > 0)
                pod_worker_restore_slices(pod);
        r = check_pod_run_dir(pod, reterr);
        if (r >= 0)
                r = bundle_prepare_container(&config, pod->pod, c->spec, attempt, c->image,
                                             sandbox_pid(pod->sandbox), &bundle, reterr);
        if (r >= 0)
                r = bundle_journal_fields(&config, pod->pod, c->spec, bundle.id, &journal_fields);
        if (r < 0)
                return r;
        r = remember_attempt_image(c);
        if (r < 0)
                return r;
        c->generation = pod->generation;
        c->has_run = true;
        pod_container_print_checkpoint(c, checkpoint);
        c->stop_began_at = 0;
        c->kill_grace = (OptionalInt){ 0 };
        arm_start_slot_timer(c);
        return sandbox_run_container(pod->sandbox, &(SandboxContainerConfig){
                                                           .id = bundle.id,
                                                           .name = c->spec->name,
                                                           .attempt = attempt,
                                                           .bundle = bundle.directory,
                                                           .log = bundle.log,
                                                           .journal_fields = journal_fields,
                                                           .events_file = bundle.events_file,
                                                           .note = checkpoint,
                                                           .has_input = c->spec->has_stdin,
                                                           .has_terminal = c->spec->tty,
                                                   });
}

static int driver_run_attempt(void *userdata, unsigned attempt, Error *reterr) {
        PodContainer *c = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r = run_attempt(c, attempt, &error);

        if (r < 0)
                record_pod_event(c->pod, c->spec->name, POD_EVENT_WARNING, "Failed", "Error: %s",
                                 error_message(&error, r));
        if (r < 0 && reterr)
                error_move(reterr, &error);
        return r;
}

void pod_container_remove_attempt(PodContainer *c, unsigned attempt) {
        const PodWorker *pod = c->pod;
        cleanup_with(bundle_done) Bundle bundle = { 0 };
        const char *remains[2];

        /* The log of the attempt that ended is kept for "logs --previous"; those before it are
         * not. */
        bundle_remove_logs_before(pod->context->bundle, pod->pod, c->spec->name, attempt);
        if (!pod->sandbox || bundle_attempt_paths(pod->context->bundle, pod->pod, c->spec->name,
                                                  attempt, &bundle) < 0)
                return;
        for (size_t i = 0; i < N_ELEMENTS(remains); i++)
                remains[i] = bundle.remains[i];
        (void) sandbox_remove_container(pod->sandbox, bundle.id, remains, N_ELEMENTS(remains));
}

void pod_container_on_exited(PodContainer *c, unsigned attempt, const ContainerExit *end) {
        cleanup_free char *message = bundle_termination_message(
                c->pod->context->bundle, c->pod->pod, c->spec, attempt, end->exit_code != 0);
        const ObjectMeta *pod = &c->pod->pod->metadata;
        ContainerExit with_message = *end;

        with_message.message = message;
        container_machine_on_exited(c->machine, attempt, &with_message);
        if (attempt == container_machine_attempt(c->machine) &&
            container_machine_is_in_back_off(c->machine))
                record_pod_event(c->pod, c->spec->name, POD_EVENT_WARNING, "BackOff",
                                 "Back-off restarting failed container %s in pod %s_%s(%s)",
                                 c->spec->name, pod->name, pod->namespace, pod->uid);
}

static void driver_remove_attempt(void *userdata, unsigned attempt) {
        pod_container_remove_attempt(userdata, attempt);
}

static int on_container_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        PodContainer *c = userdata;

        container_machine_on_retry(c->machine, pod_worker_may_start_container(c));
        pod_worker_mark_dirty(c->pod);
        return 0;
}

static void driver_arm_retry(void *userdata, uint64_t delay_usec) {
        PodContainer *c = userdata;
        int r;

        c->retry_timer = sd_event_source_disable_unref(c->retry_timer);
        r = sd_event_add_time_relative(c->pod->context->event, &c->retry_timer, CLOCK_BOOTTIME,
                                       delay_usec, 0, on_container_retry, c);
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the retry of '%s/%s'", c->pod->description,
                                       c->spec->name);
}

static void driver_disarm_retry(void *userdata) {
        PodContainer *c = userdata;

        c->retry_timer = sd_event_source_disable_unref(c->retry_timer);
}

static void driver_status_changed(void *userdata) {
        PodContainer *c = userdata;

        pod_worker_mark_dirty(c->pod);
}

const ContainerDriver pod_container_driver = {
        .request_images = pod_container_request_images,
        .cancel_image_request = pod_container_cancel_image_request,
        .acquire_start_slot = driver_acquire_start_slot,
        .release_start_slot = driver_release_start_slot,
        .run = driver_run_attempt,
        .run_hook = pod_container_run_hook,
        .cancel_hook = pod_container_cancel_hook,
        .stop = pod_container_stop,
        .shorten_grace = pod_container_shorten_grace,
        .remove_attempt = driver_remove_attempt,
        .arm_retry = driver_arm_retry,
        .disarm_retry = driver_disarm_retry,
        .status_changed = driver_status_changed,
};
