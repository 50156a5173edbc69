/* SPDX-License-Identifier: Apache-2.0 */
/* The pod sandbox: the shim is started or found, the pod's mounts and network are set up; at the
 * end the network is detached, the shim exits, and the remains are cleaned up. Steps and the shim's
 * events change the state; nothing here blocks. A pod in the host network skips the network
 * states. */

#include "agent/bundle/cdi-edits.h"
#include "agent/bundle/cgroups.h"
#include "agent/bundle/log-paths.h"
#include "agent/bundle/pod-dns.h"
#include "agent/bundle/pod-paths.h"
#include "agent/model/references.h"
#include "agent/pods/pod/event-recorder.h"
#include "agent/pods/pod/pod-csi-volumes.h"
#include "agent/pods/pod/slices.h"
#include "agent/pods/worker/pod-worker-private.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/message-ids.h"
#include "common/text.h"

#include <fcntl.h>

/* A sandbox that cannot be created is tried again after a second, then two, up to a minute. */
static const BackOffLimits sandbox_back_off = { 1 * USEC_PER_SEC, 60 * USEC_PER_SEC };

/* A shim responds within milliseconds. READY=1 does not wait longer than this, and after this time
 * a terminating pod's shim is killed. */
#define SHIM_ANSWER_USEC (10 * USEC_PER_SEC)

#define NETWORK_CHECK_USEC (50 * USEC_PER_MSEC) /* interval between the checks of two pods */

/* ---- state ---- */

const char *const pod_worker_state_names[N_WORKER_STATES] = {
        [WORKER_NO_SANDBOX] = "no sandbox",
        [WORKER_SYNCING] = "syncing",
        [WORKER_SETTING_UP] = "setting up",
        [WORKER_ATTACHING] = "attaching",
        [WORKER_READY] = "ready",
        [WORKER_DETACHING] = "detaching",
        [WORKER_TEARING_DOWN] = "tearing down",
        [WORKER_SANDBOX_LOST] = "sandbox lost",
        [WORKER_CLEANING_UP] = "cleaning up",
        [WORKER_UNMOUNTING] = "unmounting",
        [WORKER_RETRY_WAIT] = "retry wait",
        [WORKER_REMOVED] = "removed",
};

bool pod_worker_sandbox_is_ready(const PodWorker *worker) {
        return worker->sandbox.state == WORKER_READY && !worker->sandbox.is_lost;
}

bool pod_worker_is_set_up(const PodWorker *worker) {
        PodWorkerState state = worker->sandbox.state;

        if (state == WORKER_RETRY_WAIT)
                state = worker->sandbox.retry_state;
        return state == WORKER_SYNCING || state == WORKER_SETTING_UP || state == WORKER_ATTACHING ||
               state == WORKER_READY;
}

void pod_worker_set_state(PodWorker *worker, PodWorkerState state) {
        worker->sandbox.timer = sd_event_source_disable_unref(worker->sandbox.timer);
        log_debug("Pod worker '%s': %s -> %s", worker->instance.description,
                  pod_worker_state_names[worker->sandbox.state], pod_worker_state_names[state]);
        worker->sandbox.state = state;
}

void pod_worker_abandon_sandbox(PodWorker *worker, const char *why) {
        pod_worker_set_last_error(worker, why);
        worker->sandbox.is_lost = true;
        pod_instance_mark_dirty(&worker->instance);
}

static int on_sandbox_state_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        PodWorker *worker = userdata;

        if (worker->sandbox.state == WORKER_RETRY_WAIT)
                pod_worker_set_state(worker, worker->sandbox.retry_state);
        else if (worker->instance.is_desired) {
                worker->sandbox.is_unresponsive = true;
                pod_worker_set_last_error(worker, "its shim does not answer");
        } else
                pod_worker_abandon_sandbox(worker, "its shim does not answer and is killed");
        pod_instance_mark_dirty(&worker->instance);
        return 0;
}

static void arm_sandbox_state_timer(PodWorker *worker, clockid_t clock, uint64_t usec) {
        int r = sd_event_add_time_relative(worker->instance.context->event, &worker->sandbox.timer,
                                           clock, usec, 0, on_sandbox_state_timer, worker);

        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the sandbox timer of pod '%s'",
                                       worker->instance.description);
}

/* Retries with an increasing delay until the pod is set up. */
static void retry_sandbox_later(PodWorker *worker, PodWorkerState state) {
        PodSandboxProgress *sandbox = &worker->sandbox;

        sandbox->retry_delay_usec =
                back_off_next_delay(sandbox->retry_delay_usec, &sandbox_back_off);
        sandbox->retry_state = state;
        pod_worker_set_state(worker, WORKER_RETRY_WAIT);
        arm_sandbox_state_timer(worker, CLOCK_BOOTTIME, sandbox->retry_delay_usec);
}

void pod_worker_retry_now(PodWorker *worker) {
        if (worker->sandbox.state != WORKER_RETRY_WAIT)
                return;
        worker->sandbox.retry_delay_usec = 0;
        pod_worker_set_state(worker, worker->sandbox.retry_state);
}

/* ---- network ---- */

/* Whether there is a network that must be detached. */
static bool has_pod_network(const PodWorker *worker) {
        return worker->instance.attachment &&
               network_attachment_is_known(worker->instance.attachment);
}

/* A pod that has completed releases its addresses, its volumes and its sandbox, as in the kubelet.
 * If the pod's file is edited, it gets new ones. */
static bool has_completed_for_good(PodWorker *worker) {
        return !pod_worker_is_terminating(worker) && !pod_worker_should_run(worker) &&
               pod_containers_are_finished(&worker->containers);
}

/* The shim was started only to detach the network of a lost one. */
static bool has_teardown_sandbox(const PodWorker *worker) {
        return worker->instance.attachment && !sandbox_has_network(worker->instance.sandbox);
}

static void detach_pod_network(PodWorker *worker) {
        pod_worker_set_state(worker, WORKER_DETACHING);
        network_attachment_detach(worker->instance.attachment, worker->instance.sandbox);
}

/* The network comes first, because the shim runs its plugins. */
static void tear_down_sandbox(PodWorker *worker) {
        if (has_pod_network(worker))
                detach_pod_network(worker);
        else {
                pod_worker_set_state(worker, WORKER_TEARING_DOWN);
                (void) sandbox_teardown(worker->instance.sandbox);
        }
}

/* The shim runs: step_ready_pod() retries. */
static void set_network_error(PodWorker *worker, const char *what, const char *why) {
        cleanup_free char *message = text_format("failed to %s sandbox network: %s", what, why);

        pod_worker_set_last_error(worker, strna(message));
        retry_sandbox_later(worker, WORKER_READY);
}

static int write_pod_hosts(const PodInstance *pod, Error *reterr) {
        const char *addresses[2];
        size_t n = 0;

        for (; n < N_ELEMENTS(addresses); n++) {
                addresses[n] = network_attachment_address(pod->attachment, n);
                if (!addresses[n])
                        break;
        }
        return bundle_write_hosts(pod->context->bundle, pod->pod, addresses, n, reterr);
}

static void enter_worker_ready(PodWorker *worker) {
        cleanup_error Error error = ERROR_NULL;
        int r = worker->instance.attachment ? write_pod_hosts(&worker->instance, &error) : 0;

        if (r < 0) {
                set_network_error(worker, "set up", error_message(&error, r));
                return;
        }
        pod_worker_set_state(worker, WORKER_READY);
        worker->sandbox.retry_delay_usec = 0;
        pod_worker_set_last_error(worker, NULL);
}

/* The mounts are complete; the network or, without one, the containers come next. */
static void enter_worker_attaching(PodWorker *worker) {
        const PodInstance *pod = &worker->instance;

        if (!pod->is_desired)
                pod_worker_set_state(worker, WORKER_READY);
        else if (pod->attachment && !network_attachment_is_attached(pod->attachment)) {
                pod_worker_set_state(worker, WORKER_ATTACHING);
                network_attachment_attach(pod->attachment, pod->sandbox, pod->pod);
        } else
                enter_worker_ready(worker);
}

static void on_pod_network_done(int r, const Error *error, void *userdata) {
        PodWorker *worker = userdata;
        bool was_attaching = worker->sandbox.state == WORKER_ATTACHING;
        LogSubject subject = pod_instance_log_subject(&worker->instance, NULL);
        LOG_ABOUT(&subject);

        if (was_attaching && !worker->instance.is_desired)
                pod_worker_set_state(worker, WORKER_READY); /* the next step detaches it */
        else if (r < 0)
                set_network_error(worker, was_attaching ? "set up" : "tear down",
                                  error_message(error, r));
        else if (was_attaching)
                enter_worker_ready(worker);
        else
                tear_down_sandbox(worker);
        pod_instance_mark_dirty(&worker->instance);
}

int pod_worker_init_sandbox(PodWorker *worker) {
        PodInstance *pod = &worker->instance;
        int r;

        if (pod->pod->spec.host_network)
                return 0;
        r = network_attachment_new(pod->context->bundle, pod->context->network,
                                   pod->pod->metadata.uid, on_pod_network_done, worker,
                                   &pod->attachment);
        if (r < 0)
                return r;
        (void) network_attachment_load(pod->attachment);
        return 0;
}

void pod_worker_done_sandbox(PodWorker *worker) {
        child_free(worker->sandbox.cleanup);
        sd_event_source_disable_unref(worker->sandbox.timer);
        sd_event_source_disable_unref(worker->sandbox.network_check_timer);
}

static void on_network_checked(int r, const Error *error, void *userdata) {
        PodWorker *worker = userdata;
        LogSubject subject = pod_instance_log_subject(&worker->instance, NULL);
        LOG_ABOUT(&subject);

        if (r >= 0)
                return;
        log_warning("The network of pod '%s' has changed since it was attached: %s",
                    worker->instance.description, error_message(error, r));
        record_pod_event(&worker->instance, NULL, POD_EVENT_WARNING, "NetworkNotReady",
                         "network is not ready: %s", error_message(error, r));
}

static int on_network_check_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        PodWorker *worker = userdata;
        const PodInstance *pod = &worker->instance;

        worker->sandbox.network_check_timer =
                sd_event_source_disable_unref(worker->sandbox.network_check_timer);
        if (pod->is_desired && worker->sandbox.state == WORKER_READY && pod->attachment)
                network_attachment_check(pod->attachment, pod->sandbox, on_network_checked);
        return 0;
}

/* A network may have broken while no agent ran. This is only reported, because a repair would break
 * connections. The pods are checked one after another, so that restarting the agent costs the node
 * little. */
static void schedule_network_check(PodWorker *worker) {
        PodInstance *pod = &worker->instance;
        uint64_t delay = NETWORK_CHECK_USEC * ++pod->context->n_network_checks;

        if (!pod->attachment || !network_attachment_is_attached(pod->attachment) ||
            worker->sandbox.network_check_timer)
                return;
        (void) sd_event_add_time_relative(pod->context->event, &worker->sandbox.network_check_timer,
                                          CLOCK_BOOTTIME, delay, NETWORK_CHECK_USEC,
                                          on_network_check_timer, worker);
}

/* ---- events of the shim ---- */

static void retry_sandbox_setup(PodWorker *worker) {
        if (worker->instance.is_desired)
                retry_sandbox_later(worker, WORKER_READY); /* see step_ready_pod() */
        else
                pod_worker_set_state(worker, WORKER_READY);
}

static void on_sandbox_setup_failed(PodWorker *worker, const char *message) {
        pod_worker_set_last_error(worker, message);
        retry_sandbox_setup(worker);
}

static int send_sandbox_setup(const PodWorker *worker) {
        const PodInstance *pod = &worker->instance;
        const BundleConfig *config = pod->context->bundle;
        cleanup_free char *fstab = pod_fstab_path(config, pod->pod->metadata.uid);
        cleanup_free char *hostname = NULL;
        int r = fstab ? pod_hostname(config, pod->pod, &hostname, NULL) : -ENOMEM;

        if (r < 0)
                return r;
        return sandbox_setup(pod->sandbox, &(SandboxSetupOptions){
                                                   .fstab = fstab,
                                                   .hostname = hostname,
                                                   .log_max_size = pod->context->log_max_size,
                                                   .log_max_files = pod->context->log_max_files,
                                           });
}

static int prepare_volumes(PodWorker *worker, Error *reterr) {
        const PodInstance *pod = &worker->instance;
        int r = bundle_prepare_volumes(pod->context->bundle, pod->pod, reterr);

        worker->sandbox.has_volumes = r >= 0;
        return r;
}

static void request_sandbox_setup(PodWorker *worker) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        pod_worker_set_state(worker, WORKER_SETTING_UP);
        r = worker->sandbox.has_volumes ? 0 : prepare_volumes(worker, &error);
        if (r == -EAGAIN) { /* a Secret is still being decrypted */
                pod_worker_set_awaited(worker, error_message(&error, r));
                retry_sandbox_setup(worker);
                return;
        }
        if (r < 0) {
                on_sandbox_setup_failed(worker, error_message(&error, r));
                return;
        }
        r = send_sandbox_setup(worker);
        if (r < 0 && r != -ENOTCONN) /* the next connection requests it again */
                on_sandbox_setup_failed(worker, strerror(-r));
}

static bool must_tear_down_sandbox(const PodWorker *worker, bool is_ready, bool has_run) {
        const NetworkAttachment *attachment = worker->instance.attachment;

        if (worker->sandbox.state == WORKER_DETACHING ||
            worker->sandbox.state == WORKER_TEARING_DOWN)
                return true;
        if (!attachment)
                return false;
        /* This includes a shim whose teardown an earlier agent has started. */
        return has_teardown_sandbox(worker) ||
               (is_ready && has_run && network_attachment_is_deleting(attachment));
}

/* Called when the agent has connected: earlier requests may have been lost, so due requests are
 * repeated. 'has_run': the shim has containers, which ran in its current network. */
static void resume_sandbox(PodWorker *worker, bool is_ready, bool has_run) {
        const PodInstance *pod = &worker->instance;

        if (pod->attachment)
                network_attachment_interrupt(pod->attachment);
        if (has_pod_network(worker))
                network_attachment_hold_netns(pod->attachment, pod->sandbox);
        if (!pod->is_desired)
                pod_worker_set_state(worker, WORKER_READY); /* the next step terminates it */
        else if (must_tear_down_sandbox(worker, is_ready, has_run))
                tear_down_sandbox(worker);
        else if (!is_ready)
                request_sandbox_setup(worker);
        else if (pod->attachment && !has_run)
                enter_worker_attaching(worker);
        else {
                pod_worker_set_state(worker, WORKER_READY);
                schedule_network_check(worker);
        }
}

/* The shim has the containers, so they are supervised even though some files have not been read. */
static void do_without_unread_checkpoints(PodWorker *worker) {
        cleanup_error Error error = ERROR_NULL;
        int r = pod_worker_load_checkpoints(worker, &error);

        if (r < 0)
                log_warning("Pod '%s': %s; continuing with the state of its shim",
                            worker->instance.description, error_message(&error, r));
        worker->has_unread_checkpoints = false;
}

static void on_sandbox_synced(PodWorker *worker, bool is_ready) {
        bool is_found = worker->sandbox.state == WORKER_SYNCING, has_run = false;

        worker->sandbox.needs_cleanup = false;
        worker->sandbox.has_volumes = worker->sandbox.has_volumes || is_ready;
        if (worker->has_unread_checkpoints)
                do_without_unread_checkpoints(worker);
        pod_worker_update_volumes(worker); /* objects may have changed while no agent ran */
        for (size_t i = 0; i < worker->containers.n; i++) {
                PodContainer *container = worker->containers.items[i];

                has_run = has_run || pod_container_has_replayed(container);
                pod_container_on_synced(container, is_found, &worker->terminated);
        }
        if (is_found)
                pod_containers_adopt_generation(&worker->containers);
        if (is_found && !worker->sandbox.is_new) {
                (void) slices_restore_pod(worker->instance.context, worker->instance.pod);
                pod_worker_resize_cgroups(worker); /* an edit that an earlier agent recorded */
        }
        resume_sandbox(worker, is_ready, has_run);
}

static void lose_pod_containers(PodWorker *worker) {
        uint64_t now = now_realtime_usec();

        for (size_t i = 0; i < worker->containers.n; i++)
                pod_container_on_sandbox_lost(worker->containers.items[i], now);
}

static void on_pod_sandbox_event(Sandbox *sandbox, const ShimEvent *event, void *userdata) {
        PodWorker *worker = userdata;
        PodContainer *c = pod_containers_find(&worker->containers, event->name);
        LogSubject subject = pod_instance_log_subject(&worker->instance, c ? event->name : NULL);
        LOG_ABOUT(&subject);

        switch (event->type) {
        case SHIM_EVENT_SYNCED:
                on_sandbox_synced(worker, event->ready);
                break;
        case SHIM_EVENT_READY:
                enter_worker_attaching(worker);
                break;
        case SHIM_EVENT_SETUP_FAILED:
                on_sandbox_setup_failed(worker, event->message);
                break;
        case SHIM_EVENT_LOST:
                /* The containers are informed at once, so that none of them sends a request to the
                 * shim. */
                worker->sandbox.is_lost = true;
                lose_pod_containers(worker);
                break;
        case SHIM_EVENT_STARTING:
        case SHIM_EVENT_STARTED:
        case SHIM_EVENT_START_FAILED:
        case SHIM_EVENT_EXITED:
                if (c)
                        pod_container_on_event(c, event);
                if (event->type == SHIM_EVENT_STARTED && worker->resizes_started)
                        pod_worker_resize_cgroups(worker);
                break;
        case SHIM_EVENT_DELETED:
        case SHIM_EVENT_EXEC_DONE:
        case SHIM_EVENT_HELLO:
        case SHIM_EVENT_ERROR:
        case SHIM_EVENT_USAGE:
        case N_SHIM_EVENT_TYPES:
                break;
        }
        /* This is written before any status reports it, because a completed container does not run
         * again. */
        if (event->type == SHIM_EVENT_EXITED || event->type == SHIM_EVENT_SYNCED)
                pod_worker_store_terminated_containers(worker);
        pod_instance_mark_dirty(&worker->instance);
}

/* ---- cleanup ---- */

/* A shim that exits before the pod is set up will probably do so again. */
static bool is_before_setup(const PodWorker *worker) {
        PodWorkerState state = worker->sandbox.state;

        return state == WORKER_SETTING_UP || state == WORKER_ATTACHING ||
               (state == WORKER_SYNCING && !worker->sandbox.needs_cleanup);
}

static void step_sandbox_lost(PodWorker *worker) {
        PodInstance *pod = &worker->instance;

        worker->sandbox.is_lost = false;
        worker->sandbox.is_unresponsive = false;
        pod->sandbox = sandbox_free(pod->sandbox);
        if (pod->attachment)
                network_attachment_on_sandbox_lost(pod->attachment);
        worker->sandbox.was_lost_in_setup = is_before_setup(worker);
        if (worker->sandbox.was_lost_in_setup)
                pod_worker_set_last_error(worker, "its shim exited before the pod was set up");
        else if (worker->sandbox.state == WORKER_TEARING_DOWN)
                pod_worker_set_last_error(worker, NULL);
        else {
                record_pod_event(pod, NULL, POD_EVENT_NORMAL, "SandboxChanged",
                                 "Pod sandbox changed, it will be killed and re-created.");
                log_set_message_id(MESSAGE_SHIM_EXITED);
                log_warning("The shim of pod '%s' exited, killing its containers",
                            pod->description);
        }
        pod_worker_set_state(worker, WORKER_SANDBOX_LOST);
        lose_pod_containers(worker);
}

/* No process of the pod runs any more: CSI drivers unmount its volumes. */
static void step_unmounting_pod(PodWorker *worker) {
        const PodInstance *pod = &worker->instance;

        if (csi_manager_unmount_pod(pod->context->csi, pod->pod->metadata.uid))
                pod_worker_set_state(worker, WORKER_REMOVED);
}

/* A terminated pod may still have a network, and only a shim can detach it. Data of a pod that was
 * desired during the first cleanup is removed in a second one. */
static void continue_after_cleanup(PodWorker *worker) {
        bool needs_shim = worker->instance.is_desired || has_pod_network(worker);

        if (needs_shim && worker->sandbox.was_lost_in_setup)
                retry_sandbox_later(worker, WORKER_NO_SANDBOX);
        else if (needs_shim)
                pod_worker_set_state(worker, WORKER_NO_SANDBOX);
        else
                pod_worker_set_state(worker, worker->sandbox.cleanup_is_whole
                                                     ? WORKER_UNMOUNTING
                                                     : WORKER_SANDBOX_LOST);
        worker->sandbox.was_lost_in_setup = false;
        if (worker->sandbox.state == WORKER_UNMOUNTING)
                step_unmounting_pod(worker);
}

/* An empty directory shows that the pod has run since the last boot (terminated-pods.h). */
static void keep_run_directory(const PodInstance *pod) {
        cleanup_free char *run_dir = pod_run_dir(pod->context->bundle, pod->pod->metadata.uid);
        int r = run_dir ? mkdir_parents_at(AT_FDCWD, run_dir, 0700) : -ENOMEM;

        if (r < 0)
                (void) log_warning_errno(r, "Cannot create the directory of pod '%s'",
                                         pod->description);
}

static void on_pod_cleaned(const ChildResult *result, void *userdata) {
        PodWorker *worker = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r = child_explain(result, "Cleaning up", &error);

        DIE_AT("pod.cleaned");
        worker->sandbox.cleanup = NULL;
        if (r < 0) {
                pod_worker_set_last_error(worker, error_message(&error, r));
                retry_sandbox_later(worker, WORKER_SANDBOX_LOST);
        } else if (worker->has_unread_checkpoints && worker->instance.is_desired) {
                /* The files show which containers have ended, and how: they are read first, and
                 * then everything that is no longer needed is removed. */
                pod_worker_set_state(worker, WORKER_NO_SANDBOX);
        } else {
                worker->sandbox.needs_cleanup = false;
                /* From now on an edit may be applied, which depends on which containers have
                 * ended. */
                pod_worker_recover_containers(worker);
                if (has_completed_for_good(worker))
                        keep_run_directory(&worker->instance);
                if (!pod_worker_should_run(worker) && worker->instance.context->devices)
                        device_manager_release(worker->instance.context->devices,
                                               worker->instance.pod->metadata.uid);
                continue_after_cleanup(worker);
        }
        pod_instance_mark_dirty(&worker->instance);
}

/* A desired pod's record and logs stay, and, unless it has ended permanently, its volumes. */
static size_t count_directories_to_clean(PodWorker *worker, size_t n_all) {
        bool keeps_volumes = (!pod_worker_has_failed(worker) || worker->failure.is_until_reboot) &&
                             !has_completed_for_good(worker);

        if (worker->sandbox.cleanup_is_whole)
                return n_all;
        return keeps_volumes ? 3 : 4;
}

/* Kills and removes the remains of the pod: processes, mounts, writable layers. */
static int start_pod_cleanup(PodWorker *worker, Error *reterr) {
        const PodInstance *pod = &worker->instance;
        const BundleConfig *config = pod->context->bundle;
        const char *uid = pod->pod->metadata.uid;
        cleanup_free char *run_dir = pod_run_dir(config, uid),
                          *state_dir = pod_state_dir(config, uid);
        cleanup_free char *containers = state_dir ? path_join(state_dir, "containers") : NULL;
        cleanup_free char *log_dir = pod_log_dir(config, pod->pod), *etc = pod_etc_dir(config, uid);
        cleanup_free char *cgroup = cgroup_of_pod(config, pod_qos_class(&pod->pod->spec), uid);
        cleanup_free char *volumes = state_dir ? path_join(state_dir, "volumes") : NULL;
        const char *directories[] = { run_dir, containers, etc, volumes, log_dir };
        SandboxCleanup cleanup = { .uid = uid, .cgroup = cgroup, .directories = directories };

        if (!run_dir || !containers || !etc || !volumes || !log_dir || !cgroup)
                return -ENOMEM;
        worker->sandbox.cleanup_is_whole = !pod->is_desired && !has_pod_network(worker);
        if (worker->sandbox.cleanup_is_whole) {
                cleanup.synced = state_dir;
                bundle_remove_log_links(config, log_dir);
                slices_stop(pod->context, cgroup);
        }
        cleanup.n_directories = count_directories_to_clean(worker, N_ELEMENTS(directories));
        /* If the agent dies now, its successor has to find it (terminated-pods.h). */
        if (!worker->sandbox.cleanup_is_whole && has_completed_for_good(worker)) {
                cleanup.emptied = run_dir;
                cleanup.directories++;
                cleanup.n_directories--;
        }
        return sandbox_cleanup(pod->context->sandbox, &cleanup, on_pod_cleaned, worker,
                               &worker->sandbox.cleanup, reterr);
}

static void step_pod_cleanup(PodWorker *worker) {
        cleanup_error Error error = ERROR_NULL;
        int r = start_pod_cleanup(worker, &error);

        if (r < 0) {
                pod_worker_set_last_error(worker, error_message(&error, r));
                retry_sandbox_later(worker, WORKER_SANDBOX_LOST);
                return;
        }
        pod_worker_set_state(worker, WORKER_CLEANING_UP);
}

/* ---- start ---- */

/* SELinux options are ignored if there is no SELinux, as by the kubelet. Logged once per pod. */
static void warn_ignored_selinux(PodWorker *worker) {
        const PodInstance *pod = &worker->instance;
        const PodSpec *spec = &pod->pod->spec;
        bool has_label = spec->security_context.se_linux_options != NULL;
        const Container *container;

        pod_foreach_container(container, spec)
                has_label = has_label || container->security_context.se_linux_options != NULL;
        if (!has_label || pod->context->bundle->has_se_linux || worker->is_selinux_warned)
                return;
        worker->is_selinux_warned = true;
        log_warning("Pod '%s': seLinuxOptions are ignored: SELinux is not enabled on this node",
                    pod->description);
}

typedef struct SecretOpening {
        const PodInstance *pod;
        bool is_under_way;
} SecretOpening;

static int begin_opening(const ObjectKey *key, void *userdata) {
        SecretOpening *opening = userdata;
        const ObjectLookup *objects = &opening->pod->context->bundle->objects;

        if (key->kind == OBJECT_SECRET &&
            secret_is_being_opened(objects, &opening->pod->pod->metadata, key->name))
                opening->is_under_way = true;
        return 0;
}

/* Starts the decryption of all encrypted Secrets of the pod together, while its shim starts.
 * Returns whether there are any. */
static bool open_secrets_of_pod(const PodInstance *pod) {
        SecretOpening opening = { .pod = pod };

        (void) pod_foreach_reference(pod->pod, begin_opening, &opening);
        return opening.is_under_way;
}

/* If a Secret is still being decrypted, the set-up of the sandbox prepares the volumes later. */
static int prepare_volumes_before_start(PodWorker *worker, bool opens_secrets, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        int r = prepare_volumes(worker, &error);

        if (r == -EAGAIN && opens_secrets)
                return 0;
        error_move(reterr, &error);
        return r;
}

static int start_pod_sandbox(PodWorker *worker, Error *reterr) {
        const PodInstance *pod = &worker->instance;
        const PodContext *context = pod->context;
        bool opens_secrets = open_secrets_of_pod(pod);
        const char *runtime;
        int r;

        worker->sandbox.start_stage = START_CLASSES;
        r = check_pod_classes(&context->bundle->objects, &context->runtimes, pod->pod, &runtime,
                              reterr);
        if (r < 0)
                return r;
        worker->sandbox.start_stage = START_DEVICES;
        if (pod->pod->spec.has_resource_claims)
                return error_setf(reterr, EOPNOTSUPP,
                                  "this node does not support dynamic resource allocation, which "
                                  "spec.resourceClaims needs; use a device plugin");
        r = pod_check_cdi(context->bundle, pod->pod, reterr);
        if (r < 0)
                return r;
        worker->sandbox.start_stage = START_SANDBOX;
        r = bundle_prepare_pod(context->bundle, pod->pod, reterr);
        if (r < 0)
                return r;
        worker->sandbox.start_stage = START_VOLUMES;
        r = pod_mount_csi_volumes(pod, reterr);
        if (r < 0)
                return r;
        r = prepare_volumes_before_start(worker, opens_secrets, reterr);
        if (r < 0)
                return r;
        worker->sandbox.start_stage = START_SANDBOX;
        slices_set_pod(context, pod->pod);
        sandbox_set_runtime(pod->sandbox, runtime);
        warn_ignored_selinux(worker);
        r = pod->attachment ? network_attachment_record_sandbox_lost(pod->attachment, reterr) : 0;
        if (r < 0)
                return r;
        return sandbox_start(
                pod->sandbox,
                &(SandboxStartOptions){ .description = pod->description,
                                        .host_network = pod->pod->spec.host_network,
                                        .host_ipc = pod->pod->spec.host_ipc,
                                        .has_systemd_cgroup = context->bundle->has_slices },
                reterr);
}

/* Starts a shim in the host network that only runs the plugins to detach the lost shim's
 * network. */
static int start_teardown_sandbox(PodWorker *worker, Error *reterr) {
        const PodInstance *pod = &worker->instance;
        cleanup_free char *run_dir = pod_run_dir(pod->context->bundle, pod->pod->metadata.uid);
        int r = run_dir ? mkdir_parents_at(AT_FDCWD, run_dir, 0700) : -ENOMEM;

        if (r < 0)
                return r;
        return sandbox_start(pod->sandbox,
                             &(SandboxStartOptions){ .description = pod->description,
                                                     .host_network = true,
                                                     .host_ipc = true },
                             reterr);
}

/* 1: a shim was found or started; 0: a cleanup comes first; -errno. */
static int connect_or_start_sandbox(PodWorker *worker, Error *reterr) {
        PodInstance *pod = &worker->instance;
        bool should_run;
        int r;

        if (!pod->sandbox) {
                r = sandbox_new(pod->context->sandbox, pod->pod->metadata.uid, on_pod_sandbox_event,
                                worker, &pod->sandbox);
                if (r < 0)
                        return r;
        }
        r = sandbox_connect(pod->sandbox, reterr);
        worker->sandbox.is_new = r == 0;
        if (r != 0)
                return r;
        if (worker->has_unread_checkpoints && pod->is_desired) {
                r = pod_worker_load_checkpoints(worker, reterr);
                if (r < 0)
                        return r;
        }
        /* The pod has no shim. The known ends of the containers are reported from now on; the
         * remains of the pod's earlier containers are cleaned up first. */
        pod_worker_recover_containers(worker);
        should_run = pod_worker_should_run(worker);
        if (worker->sandbox.needs_cleanup || (!pod->is_desired && !has_pod_network(worker))) {
                pod->sandbox = sandbox_free(pod->sandbox);
                step_pod_cleanup(worker);
                return 0;
        }
        r = should_run ? start_pod_sandbox(worker, reterr) : start_teardown_sandbox(worker, reterr);
        return r < 0 ? r : 1;
}

/* Whether a shim must be started, or may have to be stopped. */
static bool needs_sandbox(PodWorker *worker) {
        if (!worker->instance.is_desired || worker->sandbox.needs_cleanup)
                return true;
        pod_worker_recover_containers(worker);
        if (!pod_worker_should_run(worker)) /* its addresses must still be released */
                return has_pod_network(worker) && !worker->failure.is_until_reboot;
        pod_containers_on_new_sandbox(&worker->containers);
        return true;
}

/* An object or a token from the API server is awaited, which is not a failure. */
static bool is_object_awaited(const PodWorker *worker, int r) {
        SandboxStartStage stage = worker->sandbox.start_stage;

        return r == -EAGAIN && (stage == START_CLASSES || stage == START_VOLUMES);
}

/* The node admits the pod, its network can be attached, and the pods that it waits for are ready.
 */
static bool may_start_sandbox(PodWorker *worker) {
        if (pod_worker_is_admitted(worker))
                return pod_worker_has_network(worker) &&
                       awaited_pods_check(&worker->awaited, &worker->instance);
        if (worker->admission.is_waiting)
                retry_sandbox_later(worker, WORKER_NO_SANDBOX);
        return false;
}

static void step_without_sandbox(PodWorker *worker) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (!needs_sandbox(worker)) {
                pod_worker_sync_containers(worker);
                (void) csi_manager_unmount_pod(worker->instance.context->csi,
                                               worker->instance.pod->metadata.uid);
                return;
        }
        if (pod_worker_should_run(worker) && !worker->sandbox.needs_cleanup &&
            !may_start_sandbox(worker))
                return;
        worker->sandbox.start_stage = START_SANDBOX;
        r = connect_or_start_sandbox(worker, &error);
        if (r < 0) {
                if (is_object_awaited(worker, r))
                        pod_worker_set_awaited(worker, error_message(&error, r));
                else
                        pod_worker_set_last_error(worker, error_message(&error, r));
                worker->instance.sandbox = sandbox_free(worker->instance.sandbox);
                retry_sandbox_later(worker, WORKER_NO_SANDBOX);
        } else if (r > 0) {
                pod_worker_set_state(worker, WORKER_SYNCING);
                arm_sandbox_state_timer(worker, CLOCK_AWAKE, SHIM_ANSWER_USEC);
        }
}

/* ---- the step ---- */

static void step_terminating_pod(PodWorker *worker) {
        pod_worker_sync_containers(worker);
        if (pod_containers_are_finished(&worker->containers))
                tear_down_sandbox(worker);
}

static void step_ready_pod(PodWorker *worker) {
        if (pod_worker_is_terminating(worker)) {
                step_terminating_pod(worker);
                return;
        }
        if (has_completed_for_good(worker)) {
                tear_down_sandbox(worker);
                return;
        }
        if (worker->last_error && !pod_worker_must_stop_containers(worker)) { /* a retry is due */
                if (has_teardown_sandbox(worker))
                        tear_down_sandbox(worker);
                else
                        request_sandbox_setup(worker);
                return;
        }
        if (!worker->has_checked_csi) {
                worker->has_checked_csi = true;
                pod_check_running_csi_volumes(&worker->instance);
        }
        pod_containers_restart_outdated(&worker->containers);
        pod_worker_sync_containers(worker);
}

void pod_worker_step_lost_sandbox(PodWorker *worker) {
        if (worker->sandbox.is_lost)
                step_sandbox_lost(worker);
}

void pod_worker_step_sandbox(PodWorker *worker) {
        switch (worker->sandbox.state) {
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
                if (!worker->instance.is_desired)
                        step_terminating_pod(worker);
                break;
        case WORKER_UNMOUNTING:
                step_unmounting_pod(worker);
                break;
        case WORKER_RETRY_WAIT:
        case WORKER_SYNCING:
        case WORKER_ATTACHING:
        case WORKER_DETACHING:
        case WORKER_TEARING_DOWN:
        case WORKER_CLEANING_UP:
        case WORKER_REMOVED:
        case N_WORKER_STATES:
                break;
        }
}
