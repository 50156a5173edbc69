/* SPDX-License-Identifier: Apache-2.0 */
/* What the shim of a pod tells. News of containers go to their machines; what a shim tells of its
 * past, when it was found or found again, is kept until it has told all, for only the whole says
 * what has become of a container. */

#include "agent/bundle/paths.h"
#include "agent/bundle/pod-dns.h"
#include "agent/pods/event-recorder.h"
#include "agent/pods/pod-worker-private.h"
#include "agent/pods/slices.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

static void replayed_attempt_done(ReplayedAttempt *replayed) {
        free(replayed->message);
        free(replayed->note);
        *replayed = (ReplayedAttempt){ 0 };
}

void pod_container_discard_replayed(PodContainer *c) {
        replayed_attempt_done(&c->latest);
        replayed_attempt_done(&c->previous);
}

PodContainer *pod_worker_find_container(PodWorker *worker, const char *name) {
        for (size_t i = 0; name && i < worker->n_containers; i++)
                if (streq(worker->containers[i].spec->name, name))
                        return &worker->containers[i];
        return NULL;
}

/* Keeps the last two attempts; the shim tells them oldest first. What an older one left is nobody's
 * business any more. */
static void store_replayed_attempt(PodContainer *c, const SandboxEvent *event) {
        if (c->latest.is_known && c->latest.attempt != event->attempt) {
                if (c->previous.is_known && !c->previous.is_deleted)
                        pod_container_remove_attempt(c, c->previous.attempt);
                replayed_attempt_done(&c->previous);
                c->previous = c->latest;
                c->latest = (ReplayedAttempt){ 0 };
        }
        replayed_attempt_done(&c->latest);
        c->latest = (ReplayedAttempt){
                .is_known = true,
                .type = event->type,
                .attempt = event->attempt,
                .is_deleted = event->deleted,
                .runtime_failed = event->runtime_failed,
                .exit = { .exit_code = event->exit_code,
                          .oom_killed = event->oom_killed,
                          .started_at = event->started_at,
                          .finished_at = event->finished_at },
                .message = event->message ? strdup(event->message) : NULL,
                .note = event->note ? strdup(event->note) : NULL,
        };
}

static void report_log_ended(const PodContainer *c, unsigned attempt) {
        cleanup_free char *log_dir = pod_log_dir(c->pod->context->bundle, c->pod->pod);
        cleanup_free char *directory = log_dir ? path_join(log_dir, c->spec->name) : NULL;

        if (directory)
                c->pod->context->on_log_ended(directory, attempt, c->pod->context->userdata);
}

/* The present attempt as it was told. Who runs has started, and so has who ended. */
static void replay_latest_attempt(PodContainer *c) {
        const ReplayedAttempt *latest = &c->latest;

        if (latest->type == SANDBOX_STARTING)
                return; /* what comes of it follows */
        if (latest->type == SANDBOX_START_FAILED)
                container_machine_on_start_failed(c->machine, latest->attempt,
                                                  latest->runtime_failed, strna(latest->message));
        else
                container_machine_on_started(c->machine, latest->attempt, latest->exit.started_at);
        /* Before its end is told: whose pod ends is not restarted. */
        if (pod_worker_must_stop_containers(c->pod))
                container_machine_disable_restart(c->machine);
        if (latest->type != SANDBOX_EXITED)
                return;
        report_log_ended(c, latest->attempt);
        pod_container_on_exited(c, latest->attempt, &latest->exit);
}

/* Found by a new agent: the machine is brought to where the container is. */
static void adopt_container_attempt(PodContainer *c) {
        AttemptCheckpoint checkpoint;

        pod_container_parse_checkpoint(c, strna(c->latest.note), &checkpoint);
        c->has_run = true;
        c->latest.exit.is_found = true;
        container_machine_adopt(c->machine, c->latest.attempt, checkpoint.next_delay_usec);
        if (checkpoint.has_post_started)
                container_machine_adopt_post_started(c->machine);
        if (checkpoint.is_killed)
                container_machine_adopt_killed(c->machine);
        container_probes_adopt(c, checkpoint.has_started, checkpoint.is_ready);
        if (c->previous.type == SANDBOX_EXITED && c->previous.is_known)
                container_machine_adopt_last(c->machine, c->previous.attempt, &c->previous.exit);
        if (c->latest.type == SANDBOX_STARTING)
                container_machine_adopt_creating(c->machine);
        replay_latest_attempt(c);
}

/* The connection broke and is there again: news may have been lost in between, and requests too. */
static void reconcile_container_attempt(PodContainer *c) {
        unsigned attempt = container_machine_attempt(c->machine);

        if (!container_machine_has_process(c->machine))
                return;
        if (c->latest.is_known && c->latest.attempt == attempt)
                replay_latest_attempt(c);
        else
                container_machine_on_start_failed(c->machine, attempt, /* by_runtime= */ false,
                                                  "the connection to the shim broke");
}

static void adopt_or_reconcile(PodContainer *c, bool is_found) {
        if (c->previous.is_known && !c->previous.is_deleted)
                pod_container_remove_attempt(c, c->previous.attempt);
        if (!is_found)
                reconcile_container_attempt(c);
        else if (c->latest.is_known)
                adopt_container_attempt(c);
        else
                pod_container_recover_attempt(c);
        pod_container_discard_replayed(c);
}

void pod_worker_request_sandbox_setup(PodWorker *worker) {
        const BundleConfig *config = worker->context->bundle;
        cleanup_free char *fstab = pod_fstab_path(config, worker->pod->metadata.uid);
        cleanup_free char *hostname = NULL;

        if (!fstab || pod_hostname(config, worker->pod, &hostname, NULL) < 0)
                return;
        pod_worker_set_state(worker, WORKER_SETTING_UP);
        (void) sandbox_setup(worker->sandbox,
                             &(SandboxSetupOptions){
                                     .fstab = fstab,
                                     .hostname = hostname,
                                     .log_max_size = worker->context->log_max_size,
                                     .log_max_files = worker->context->log_max_files,
                             });
}

/* It has told all that it knows, and goes on from there. Where the connection broke, what was asked
 * for may have been lost, so a pod that is ending asks again. */
static void on_sandbox_synced(PodWorker *worker, bool is_ready) {
        bool is_found = worker->state == WORKER_SYNCING, has_run = false;

        worker->needs_cleanup = false;
        /* They may have changed while nobody looked. */
        pod_worker_update_volumes(worker);
        for (size_t i = 0; i < worker->n_containers; i++) {
                has_run = has_run || worker->containers[i].latest.is_known;
                adopt_or_reconcile(&worker->containers[i], is_found);
        }
        if (is_found)
                pod_worker_adopt_order(worker);
        if (is_found) { /* an edit that an earlier agent recorded */
                (void) slices_restore_pod(worker->context, worker->pod);
                pod_worker_resize_cgroups(worker);
        }
        pod_worker_resume_sandbox(worker, is_ready, has_run);
}

/* One call of the runtime creates and starts: both are known at once. */
static void record_container_event(const PodContainer *c, const SandboxEvent *event) {
        if (event->attempt != container_machine_attempt(c->machine))
                return;
        if (event->type == SANDBOX_STARTED) {
                record_pod_event(c->pod, c->spec->name, POD_EVENT_NORMAL, "Created",
                                 "Container created");
                record_pod_event(c->pod, c->spec->name, POD_EVENT_NORMAL, "Started",
                                 "Container started");
        } else if (event->type == SANDBOX_START_FAILED)
                record_pod_event(c->pod, c->spec->name, POD_EVENT_WARNING, "Failed", "Error: %s",
                                 strna(event->message));
}

static void on_container_shim_event(PodContainer *c, const SandboxEvent *event) {
        PodContext *context = c->pod->context;
        ContainerExit end = { .exit_code = event->exit_code,
                              .oom_killed = event->oom_killed,
                              .started_at = event->started_at,
                              .finished_at = event->finished_at };

        record_container_event(c, event);
        if (event->type != SANDBOX_EXITED)
                pod_worker_restore_slices(c->pod);
        if (event->type == SANDBOX_STARTED) {
                context->n_containers_started++;
                context->n_containers_restarted += event->attempt > 0;
                container_machine_on_started(c->machine, event->attempt, event->started_at);
        } else if (event->type == SANDBOX_START_FAILED) {
                context->n_start_errors++;
                container_machine_on_start_failed(c->machine, event->attempt, event->runtime_failed,
                                                  strna(event->message));
        } else if (event->type == SANDBOX_EXITED) {
                report_log_ended(c, event->attempt);
                pod_container_on_exited(c, event->attempt, &end);
        }
}

static void on_sandbox_setup_failed(PodWorker *worker, const char *message) {
        pod_worker_set_last_error(worker, message);
        if (worker->is_desired)
                pod_worker_retry_later(worker,
                                       WORKER_READY); /* its shim is there; see step_ready() */
        else
                pod_worker_set_state(worker, WORKER_READY);
}

void pod_worker_lose_containers(PodWorker *worker) {
        uint64_t now = now_realtime_usec();

        for (size_t i = 0; i < worker->n_containers; i++) {
                PodContainer *c = &worker->containers[i];

                pod_container_discard_replayed(c);
                if (container_machine_has_process(c->machine))
                        report_log_ended(c, container_machine_attempt(c->machine));
                container_machine_on_sandbox_lost(c->machine, now);
        }
}

/* The containers hear of it at once, so that none asks it for anything any more. */
static void on_pod_sandbox_lost(PodWorker *worker) {
        worker->sandbox_is_lost = true;
        pod_worker_lose_containers(worker);
}

/* A program in a container has ended: a probe's or a hook's. */
static void on_container_exec_done(PodWorker *worker, const SandboxEvent *event) {
        for (size_t i = 0; i < worker->n_containers; i++)
                if (handler_run_on_exec_done(worker->containers[i].hook_run, event) ||
                    container_probes_on_exec_done(&worker->containers[i], event))
                        return;
}

void pod_worker_on_sandbox_event(Sandbox *sandbox, const SandboxEvent *event, void *userdata) {
        PodWorker *worker = userdata;
        PodContainer *c = pod_worker_find_container(worker, event->name);
        LogSubject subject = pod_worker_log_subject(worker, c ? c->spec->name : NULL);
        LOG_ABOUT(&subject);

        switch (event->type) {
        case SANDBOX_SYNCED:
                on_sandbox_synced(worker, event->ready);
                break;
        case SANDBOX_READY:
                pod_worker_on_sandbox_ready(worker);
                break;
        case SANDBOX_SETUP_FAILED:
                on_sandbox_setup_failed(worker, event->message);
                break;
        case SANDBOX_LOST:
                on_pod_sandbox_lost(worker);
                break;
        case SANDBOX_STARTING:
        case SANDBOX_STARTED:
        case SANDBOX_START_FAILED:
        case SANDBOX_EXITED:
                if (c && event->replayed)
                        store_replayed_attempt(c, event);
                else if (c)
                        on_container_shim_event(c, event);
                break;
        case SANDBOX_EXEC_DONE:
                if (!worker->attachment ||
                    !network_attachment_on_exec_done(worker->attachment, event))
                        on_container_exec_done(worker, event);
                break;
        case SANDBOX_DELETED:
                break;
        }
        pod_worker_mark_dirty(worker);
}
