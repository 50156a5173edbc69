/* SPDX-License-Identifier: Apache-2.0 */
/* What the shim of a pod tells. News of containers go to their machines; what a shim tells of its
 * past, when it was found or found again, is kept until it has told all, for only the whole says
 * what has become of a container. */

#include "agent/bundle/identity.h"
#include "agent/bundle/paths.h"
#include "agent/supervise/pod-internal.h"
#include "agent/supervise/slices.h"
#include "agent/supervise/tell.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

static void replayed_done(Replayed *replayed) {
        free(replayed->message);
        free(replayed->note);
        *replayed = (Replayed){ 0 };
}

void pod_container_forget_replay(PodContainer *c) {
        replayed_done(&c->latest);
        replayed_done(&c->previous);
}

PodContainer *pod_life_find_container(PodLife *life, const char *name) {
        for (size_t i = 0; name && i < life->n_containers; i++)
                if (streq(life->containers[i].spec->name, name))
                        return &life->containers[i];
        return NULL;
}

/* Keeps the last two attempts; the shim tells them oldest first. What an older one left is nobody's
 * business any more. */
static void remember(PodContainer *c, const SandboxEvent *event) {
        if (c->latest.is_known && c->latest.attempt != event->attempt) {
                if (c->previous.is_known && !c->previous.is_deleted)
                        pod_container_remove(c, c->previous.attempt);
                replayed_done(&c->previous);
                c->previous = c->latest;
                c->latest = (Replayed){ 0 };
        }
        replayed_done(&c->latest);
        c->latest = (Replayed){
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

static void log_ended(const PodContainer *c, unsigned attempt) {
        cleanup_free char *log_dir = pod_log_dir(c->pod->context->bundle, c->pod->pod);
        cleanup_free char *directory = log_dir ? path_join(log_dir, c->spec->name) : NULL;

        if (directory)
                c->pod->context->on_log_ended(directory, attempt, c->pod->context->userdata);
}

/* The present attempt as it was told. Who runs has started, and so has who ended. */
static void tell_latest(PodContainer *c) {
        const Replayed *latest = &c->latest;

        if (latest->type == SANDBOX_STARTING)
                return; /* what comes of it follows */
        if (latest->type == SANDBOX_START_FAILED)
                container_on_start_failed(c->life, latest->attempt, latest->runtime_failed,
                                          strna(latest->message));
        else
                container_on_started(c->life, latest->attempt, latest->exit.started_at);
        /* Before its end is told: whose pod ends is not restarted. */
        if (pod_life_is_ending(c->pod))
                container_retire(c->life);
        if (latest->type != SANDBOX_EXITED)
                return;
        log_ended(c, latest->attempt);
        pod_container_on_exited(c, latest->attempt, &latest->exit);
}

/* Found by a new agent: the machine is brought to where the container is. */
static void adopt(PodContainer *c) {
        AttemptNote note;

        pod_container_read_note(c, strna(c->latest.note), &note);
        c->has_run = true;
        c->latest.exit.is_found = true;
        container_adopt(c->life, c->latest.attempt, note.next_delay_usec);
        if (note.has_post_started)
                container_adopt_post_started(c->life);
        if (note.is_killed)
                container_adopt_killed(c->life);
        probers_adopt(c, note.has_started, note.is_ready);
        if (c->previous.type == SANDBOX_EXITED && c->previous.is_known)
                container_adopt_last(c->life, c->previous.attempt, &c->previous.exit);
        if (c->latest.type == SANDBOX_STARTING)
                container_adopt_creating(c->life);
        tell_latest(c);
}

/* The connection broke and is there again: news may have been lost in between, and requests too. */
static void reconcile(PodContainer *c) {
        unsigned attempt = container_attempt(c->life);

        if (!container_has_process(c->life))
                return;
        if (c->latest.is_known && c->latest.attempt == attempt)
                tell_latest(c);
        else
                container_on_start_failed(c->life, attempt, /* by_runtime= */ false,
                                          "the connection to the shim broke");
}

static void take_up(PodContainer *c, bool is_found) {
        if (c->previous.is_known && !c->previous.is_deleted)
                pod_container_remove(c, c->previous.attempt);
        if (!is_found)
                reconcile(c);
        else if (c->latest.is_known)
                adopt(c);
        else
                pod_container_recover(c);
        pod_container_forget_replay(c);
}

void pod_life_ask_for_setup(PodLife *life) {
        const BundleConfig *config = life->context->bundle;
        cleanup_free char *fstab = pod_fstab_path(config, life->pod->metadata.uid);
        cleanup_free char *hostname = NULL;

        if (!fstab || pod_hostname(config, life->pod, &hostname, NULL) < 0)
                return;
        pod_life_set_phase(life, PHASE_SETTING_UP);
        (void) sandbox_setup(life->sandbox, &(SandboxSetup){
                                                    .fstab = fstab,
                                                    .hostname = hostname,
                                                    .log_max_size = life->context->log_max_size,
                                                    .log_max_files = life->context->log_max_files,
                                            });
}

/* It has told all that it knows, and goes on from there. Where the connection broke, what was asked
 * for may have been lost, so a pod that is ending asks again. */
static void on_synced(PodLife *life, bool is_ready) {
        bool is_found = life->phase == PHASE_SYNCING, has_run = false;

        life->must_clean = false;
        /* They may have changed while nobody looked. */
        pod_life_update_volumes(life);
        for (size_t i = 0; i < life->n_containers; i++) {
                has_run = has_run || life->containers[i].latest.is_known;
                take_up(&life->containers[i], is_found);
        }
        if (is_found)
                pod_life_adopt_order(life);
        if (is_found) { /* an edit that an earlier agent recorded */
                (void) slices_restore_pod(life->context, life->pod);
                pod_life_resize(life);
        }
        pod_life_resume(life, is_ready, has_run);
}

/* One call of the runtime creates and starts: both are known at once. */
static void tell_container_event(const PodContainer *c, const SandboxEvent *event) {
        if (event->attempt != container_attempt(c->life))
                return;
        if (event->type == SANDBOX_STARTED) {
                event_tell(c->pod, c->spec->name, POD_EVENT_NORMAL, "Created", "Container created");
                event_tell(c->pod, c->spec->name, POD_EVENT_NORMAL, "Started", "Container started");
        } else if (event->type == SANDBOX_START_FAILED)
                event_tell(c->pod, c->spec->name, POD_EVENT_WARNING, "Failed", "Error: %s",
                           strna(event->message));
}

static void on_container_event(PodContainer *c, const SandboxEvent *event) {
        PodContext *context = c->pod->context;
        ContainerExit end = { .exit_code = event->exit_code,
                              .oom_killed = event->oom_killed,
                              .started_at = event->started_at,
                              .finished_at = event->finished_at };

        tell_container_event(c, event);
        if (event->type != SANDBOX_EXITED)
                pod_life_restore_slices(c->pod);
        if (event->type == SANDBOX_STARTED) {
                context->n_containers_started++;
                context->n_containers_restarted += event->attempt > 0;
                container_on_started(c->life, event->attempt, event->started_at);
        } else if (event->type == SANDBOX_START_FAILED) {
                context->n_start_errors++;
                container_on_start_failed(c->life, event->attempt, event->runtime_failed,
                                          strna(event->message));
        } else if (event->type == SANDBOX_EXITED) {
                log_ended(c, event->attempt);
                pod_container_on_exited(c, event->attempt, &end);
        }
}

static void on_setup_failed(PodLife *life, const char *message) {
        pod_life_set_trouble(life, message);
        if (life->is_wanted)
                pod_life_retry_later(life, PHASE_READY); /* its shim is there; see step_ready() */
        else
                pod_life_set_phase(life, PHASE_READY);
}

void pod_life_end_containers(PodLife *life) {
        uint64_t now = now_realtime_usec();

        for (size_t i = 0; i < life->n_containers; i++) {
                PodContainer *c = &life->containers[i];

                pod_container_forget_replay(c);
                if (container_has_process(c->life))
                        log_ended(c, container_attempt(c->life));
                container_on_sandbox_lost(c->life, now);
        }
}

/* The containers hear of it at once, so that none asks it for anything any more. */
static void on_lost(PodLife *life) {
        life->sandbox_is_lost = true;
        pod_life_end_containers(life);
}

/* A program in a container has ended: a probe's or a hook's. */
static void on_action_done(PodLife *life, const SandboxEvent *event) {
        for (size_t i = 0; i < life->n_containers; i++)
                if (action_handle(life->containers[i].hook, event) ||
                    probers_handle(&life->containers[i], event))
                        return;
}

void pod_life_on_event(Sandbox *sandbox, const SandboxEvent *event, void *userdata) {
        PodLife *life = userdata;
        PodContainer *c = pod_life_find_container(life, event->name);
        LogSubject subject = pod_life_subject(life, c ? c->spec->name : NULL);
        LOG_ABOUT(&subject);

        switch (event->type) {
        case SANDBOX_SYNCED:
                on_synced(life, event->ready);
                break;
        case SANDBOX_READY:
                pod_life_on_ready(life);
                break;
        case SANDBOX_SETUP_FAILED:
                on_setup_failed(life, event->message);
                break;
        case SANDBOX_LOST:
                on_lost(life);
                break;
        case SANDBOX_STARTING:
        case SANDBOX_STARTED:
        case SANDBOX_START_FAILED:
        case SANDBOX_EXITED:
                if (c && event->replayed)
                        remember(c, event);
                else if (c)
                        on_container_event(c, event);
                break;
        case SANDBOX_EXEC_DONE:
                if (!life->attachment || !attachment_handle(life->attachment, event))
                        on_action_done(life, event);
                break;
        case SANDBOX_DELETED:
                break;
        }
        pod_life_mark(life);
}
