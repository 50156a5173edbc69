/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a pod's life that is about its network: between the mounts and the first container it
 * is attached, between the last container and the end of the shim it is detached. A pod in the
 * node's network passes through here without a stop. */

#include "agent/bundle/paths.h"
#include "agent/pods/event-recorder.h"
#include "agent/pods/pod-worker-private.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>

#define NETWORK_CHECK_USEC (50 * USEC_PER_MSEC) /* between the checks of two pods */

bool pod_worker_has_network(const PodWorker *worker) {
        return worker->attachment && network_attachment_is_known(worker->attachment);
}

void pod_worker_tear_down_sandbox(PodWorker *worker) {
        if (pod_worker_has_network(worker)) {
                pod_worker_set_state(worker, WORKER_DETACHING);
                network_attachment_detach(worker->attachment, worker->sandbox);
        } else {
                pod_worker_set_state(worker, WORKER_TEARING_DOWN);
                (void) sandbox_teardown(worker->sandbox);
        }
}

/* ---- attached ---- */

static void set_network_error(PodWorker *worker, const char *what, const char *why) {
        cleanup_free char *message = NULL;

        if (asprintf(&message, "failed to %s sandbox network: %s", what, why) < 0)
                message = NULL;
        pod_worker_set_last_error(worker, strna(message));
        pod_worker_retry_later(worker, WORKER_READY); /* its shim is there; see step_ready() */
}

static int write_pod_hosts(const PodWorker *worker, Error *reterr) {
        const char *addresses[2];
        size_t n = 0;

        for (; n < N_ELEMENTS(addresses); n++) {
                addresses[n] = network_attachment_address(worker->attachment, n);
                if (!addresses[n])
                        break;
        }
        return bundle_write_hosts(worker->context->bundle, worker->pod, addresses, n, reterr);
}

static void enter_worker_ready(PodWorker *worker) {
        cleanup_error Error error = ERROR_NULL;
        int r = worker->attachment ? write_pod_hosts(worker, &error) : 0;

        if (r < 0) {
                set_network_error(worker, "set up", error_message(&error, r));
                return;
        }
        pod_worker_set_state(worker, WORKER_READY);
        worker->retry_delay_usec = 0;
        pod_worker_set_last_error(worker, NULL);
}

void pod_worker_on_sandbox_ready(PodWorker *worker) {
        if (!worker->is_desired)
                pod_worker_set_state(worker, WORKER_READY);
        else if (worker->attachment && !network_attachment_is_attached(worker->attachment)) {
                pod_worker_set_state(worker, WORKER_ATTACHING);
                network_attachment_attach(worker->attachment, worker->sandbox, worker->pod);
        } else
                enter_worker_ready(worker);
}

static void on_pod_network_done(int r, const Error *error, void *userdata) {
        PodWorker *worker = userdata;
        bool was_attaching = worker->state == WORKER_ATTACHING;

        if (was_attaching && !worker->is_desired)
                pod_worker_set_state(worker, WORKER_READY); /* from where it is detached */
        else if (r < 0)
                set_network_error(worker, was_attaching ? "set up" : "tear down",
                                  error_message(error, r));
        else if (was_attaching)
                enter_worker_ready(worker);
        else
                pod_worker_tear_down_sandbox(worker);
        pod_worker_mark_dirty(worker);
}

int pod_worker_new_attachment(PodWorker *worker) {
        int r;

        if (worker->pod->spec.host_network)
                return 0;
        r = network_attachment_new(worker->context->bundle, worker->context->network,
                                   worker->pod->metadata.uid, on_pod_network_done, worker,
                                   &worker->attachment);
        if (r >= 0)
                (void) network_attachment_load(worker->attachment);
        return r;
}

/* ---- found ---- */

static void on_network_checked(int r, const Error *error, void *userdata) {
        PodWorker *worker = userdata;

        if (r >= 0)
                return;
        log_warning("The network of pod '%s' is not what it was: %s", worker->description,
                    error_message(error, r));
        record_pod_event(worker, NULL, POD_EVENT_WARNING, "NetworkNotReady",
                         "network is not ready: %s", error_message(error, r));
}

static int on_network_check_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        PodWorker *worker = userdata;

        worker->network_check_timer = sd_event_source_disable_unref(worker->network_check_timer);
        if (worker->is_desired && worker->state == WORKER_READY && worker->attachment)
                network_attachment_check(worker->attachment, worker->sandbox, on_network_checked);
        return 0;
}

/* What held its rules and links may have gone while no agent looked. Nothing is mended by itself,
 * for connections would break: a person is told. One pod after another, so that an agent that comes
 * back costs its node little. */
static void schedule_network_check(PodWorker *worker) {
        uint64_t delay = NETWORK_CHECK_USEC * ++worker->context->n_network_checks;

        if (!worker->attachment || !network_attachment_is_attached(worker->attachment) ||
            worker->network_check_timer)
                return;
        (void) sd_event_add_time_relative(worker->context->event, &worker->network_check_timer,
                                          CLOCK_BOOTTIME, delay, NETWORK_CHECK_USEC,
                                          on_network_check_timer, worker);
}

bool pod_worker_has_teardown_sandbox(const PodWorker *worker) {
        return worker->attachment && !sandbox_has_network(worker->sandbox);
}

static bool must_tear_down_sandbox(const PodWorker *worker, bool is_ready, bool has_run) {
        if (worker->state == WORKER_DETACHING || worker->state == WORKER_TEARING_DOWN)
                return true;
        if (!worker->attachment)
                return false;
        /* An earlier agent's, or ours; or what one had begun to end. */
        return pod_worker_has_teardown_sandbox(worker) ||
               (is_ready && has_run && network_attachment_is_deleting(worker->attachment));
}

void pod_worker_resume_sandbox(PodWorker *worker, bool is_ready, bool has_run) {
        if (worker->attachment)
                network_attachment_interrupt(worker->attachment);
        if (pod_worker_has_network(worker))
                network_attachment_hold_netns(worker->attachment, worker->sandbox);
        if (worker->is_desired && must_tear_down_sandbox(worker, is_ready, has_run))
                pod_worker_tear_down_sandbox(worker);
        else if (worker->is_desired && !is_ready)
                pod_worker_request_sandbox_setup(worker);
        else if (worker->is_desired && worker->attachment && !has_run)
                pod_worker_on_sandbox_ready(worker);
        else { /* who is not wanted is ended from there */
                pod_worker_set_state(worker, WORKER_READY);
                if (worker->is_desired)
                        schedule_network_check(worker);
        }
}

int pod_worker_start_teardown_sandbox(PodWorker *worker, Error *reterr) {
        cleanup_free char *run_dir =
                pod_run_dir(worker->context->bundle, worker->pod->metadata.uid);
        int r = run_dir ? mkdir_parents_at(AT_FDCWD, run_dir, 0700) : -ENOMEM;

        if (r < 0)
                return r;
        return sandbox_start(worker->sandbox,
                             &(SandboxStartOptions){ .description = worker->description,
                                                     .host_network = true,
                                                     .host_ipc = true },
                             reterr);
}
