/* SPDX-License-Identifier: Apache-2.0 */
/* Pods step; containers are driven. The shim's events move the phase and the containers' machines;
 * pod_step() then does whatever is due. A pod that is edited is two lives: the old one ends, then
 * the new one starts. */

#include "agent/supervise/pod.h"

#include "agent/bundle/identity.h"
#include "agent/bundle/logs.h"
#include "agent/bundle/paths.h"
#include "agent/bundle/resources.h"
#include "agent/model/schema.h"
#include "agent/supervise/pod-internal.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"

/* A sandbox that cannot be made is tried again after a second, then two, to a minute. */
static const BackOff sandbox_back_off = { 1 * USEC_PER_SEC, 60 * USEC_PER_SEC };

static const char seen_annotation[] = "kubernetes.io/config.seen";

void pod_life_mark(PodLife *life) {
        life->context->on_dirty(life, life->context->userdata);
}

void pod_life_set_trouble(PodLife *life, const char *message) {
        if (streq_ptr(life->trouble, message))
                return;
        free(life->trouble);
        life->trouble = message ? strdup(message) : NULL;
        if (message)
                log_warning("Pod '%s': %s", life->description, message);
        pod_life_mark(life);
}

static void on_turn(void *userdata) {
        PodContainer *c = userdata;

        container_on_turn(c->life);
}

static int make_containers(PodLife *life) {
        const PodSpec *spec = &life->pod->spec;

        life->containers = calloc(spec->containers.n, sizeof(*life->containers));
        if (!life->containers)
                return -ENOMEM;
        for (size_t i = 0; i < spec->containers.n; i++) {
                PodContainer *c = &life->containers[i];
                int r;

                c->pod = life;
                c->spec = &spec->containers.items[i];
                c->turn = (Turn){ .on_turn = on_turn, .userdata = c };
                r = container_new(life->description, c->spec, spec->restart_policy,
                                  &life->context->back_off, &pod_container_driver, c, &c->life);
                if (r < 0)
                        return r;
                life->n_containers++;
        }
        return 0;
}

int pod_life_new_take(PodContext *context, Pod *pod, bool was_recorded, PodLife **ret) {
        const char *seen = string_map_get(&pod->metadata.annotations, seen_annotation);
        PodLife *life = calloc(1, sizeof(*life));
        int r = -ENOMEM;

        if (!life)
                return -ENOMEM;
        life->context = context;
        life->is_wanted = true;
        life->must_clean = was_recorded;
        if (!seen || parse_rfc3339(seen, &life->start_time) < 0)
                life->start_time = now_realtime_usec();
        life->pod = pod;
        if (asprintf(&life->description, "%s/%s", pod->metadata.namespace, pod->metadata.name) < 0)
                life->description = NULL;
        else
                r = pod_life_make_attachment(life);
        if (r >= 0)
                r = make_containers(life);
        if (r < 0) {
                life->pod = NULL; /* still the caller's */
                pod_life_free(life);
                return r;
        }
        *ret = life;
        return 0;
}

static void free_container(PodContainer *c) {
        turn_leave(&c->pod->context->turns, &c->turn);
        image_request_cancel(c->image_request);
        image_unref(c->image);
        free(c->image_id);
        sd_event_source_disable_unref(c->retry_timer);
        replayed_done(&c->latest);
        replayed_done(&c->previous);
        container_free(c->life);
}

PodLife *pod_life_free(PodLife *life) {
        if (!life)
                return NULL;
        for (size_t i = 0; i < life->n_containers; i++)
                free_container(&life->containers[i]);
        free(life->containers);
        for (size_t i = 0; i < N_POD_CONDITIONS; i++) {
                free(life->conditions[i].reason);
                free(life->conditions[i].message);
        }
        child_free(life->cleanup);
        attachment_free(life->attachment);
        sandbox_free(life->sandbox);
        sd_event_source_disable_unref(life->retry_timer);
        free(life->trouble);
        free(life->description);
        pod_free(life->pod);
        free(life);
        return NULL;
}

void pod_life_unwant(PodLife *life) {
        int64_t grace = life->pod->spec.termination_grace_period_seconds.value;

        if (!life->is_wanted)
                return;
        life->is_wanted = false;
        life->deletion_time = now_realtime_usec() + (uint64_t) MAX(grace, 1) * USEC_PER_SEC;
        log_info("Pod '%s' is not wanted any more, stopping it", life->description);
        pod_life_mark(life);
}

bool pod_life_is_wanted(const PodLife *life) {
        return life->is_wanted;
}

bool pod_life_is_gone(const PodLife *life) {
        return life->phase == PHASE_GONE;
}

bool pod_life_is_synced(const PodLife *life) {
        return life->phase != PHASE_SYNCING && !(life->phase == PHASE_NONE && life->must_clean);
}

const Pod *pod_life_pod(const PodLife *life) {
        return life->pod;
}

static bool string_maps_differ(const StringMap *a, const StringMap *b) {
        for (size_t i = 0; i < a->n; i++)
                if (!streq(a->items[i].key, seen_annotation) &&
                    !streq_ptr(string_map_get(b, a->items[i].key), a->items[i].value))
                        return true;
        return false;
}

int pod_life_update_metadata(PodLife *life, const Pod *pod) {
        ObjectMeta *mine = &life->pod->metadata;
        const ObjectMeta *theirs = &pod->metadata;
        ObjectMeta copy = { 0 };
        int r;

        if (!string_maps_differ(&mine->labels, &theirs->labels) &&
            !string_maps_differ(&theirs->labels, &mine->labels) &&
            !string_maps_differ(&mine->annotations, &theirs->annotations) &&
            !string_maps_differ(&theirs->annotations, &mine->annotations))
                return 0;
        r = schema_copy(&object_meta_schema, &copy, theirs);
        if (r < 0)
                return r;
        schema_done(&object_meta_schema, mine);
        *mine = copy;
        pod_life_mark(life);
        return 1;
}

/* ---- what the shim tells ---- */

void replayed_done(Replayed *replayed) {
        free(replayed->message);
        free(replayed->note);
        *replayed = (Replayed){ 0 };
}

static PodContainer *find_container(PodLife *life, const char *name) {
        for (size_t i = 0; name && i < life->n_containers; i++)
                if (streq(life->containers[i].spec->name, name))
                        return &life->containers[i];
        return NULL;
}

static ContainerExit exit_of(const SandboxEvent *event) {
        return (ContainerExit){
                .exit_code = event->exit_code,
                .oom_killed = event->oom_killed,
                .started_at = event->started_at,
                .finished_at = event->finished_at,
        };
}

/* Keeps the last two attempts; the shim tells them oldest first. */
static void remember(PodContainer *c, const SandboxEvent *event) {
        if (c->latest.is_known && c->latest.attempt != event->attempt) {
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
                .exit = exit_of(event),
                .message = event->message ? strdup(event->message) : NULL,
                .note = event->note ? strdup(event->note) : NULL,
        };
}

/* The shim has told all: bring the machine to where the container is. */
static void adopt_container(PodContainer *c) {
        const Replayed *latest = &c->latest;
        uint64_t next_delay_usec;

        if (!latest->is_known)
                return;
        pod_container_read_note(c, strna(latest->note), &next_delay_usec);
        container_adopt(c->life, latest->attempt, /* is_used= */ true, next_delay_usec);
        if (c->previous.is_known) {
                if (c->previous.type == SANDBOX_EXITED)
                        container_adopt_last(c->life, c->previous.attempt, &c->previous.exit);
                if (!c->previous.is_deleted)
                        pod_container_remove(c, c->previous.attempt);
        }
        if (latest->type == SANDBOX_STARTING)
                container_adopt_creating(c->life);
        else if (latest->type == SANDBOX_START_FAILED)
                container_on_start_failed(c->life, latest->attempt, latest->runtime_failed,
                                          strna(latest->message));
        else
                container_on_started(c->life, latest->attempt, latest->exit.started_at);
        /* Before its end is told: who is not wanted any more is not restarted. */
        if (!c->pod->is_wanted)
                container_stop(c->life);
        if (latest->type == SANDBOX_EXITED)
                container_on_exited(c->life, latest->attempt, &latest->exit);
        replayed_done(&c->latest);
        replayed_done(&c->previous);
}

void pod_life_ask_for_setup(PodLife *life) {
        const BundleConfig *config = life->context->bundle;
        cleanup_free char *fstab = pod_fstab_path(config, life->pod->metadata.uid);
        cleanup_free char *hostname = NULL;

        if (!fstab || pod_hostname(config, life->pod, &hostname, NULL) < 0)
                return;
        life->phase = PHASE_SETTING_UP;
        (void) sandbox_setup(life->sandbox, &(SandboxSetup){
                                                    .fstab = fstab,
                                                    .hostname = hostname,
                                                    .log_max_size = life->context->log_max_size,
                                                    .log_max_files = life->context->log_max_files,
                                            });
}

static void on_container_event(PodContainer *c, const SandboxEvent *event);

/* The connection broke and is there again: news may have been lost in between, and requests too. */
static void reconcile_container(PodContainer *c) {
        Replayed *latest = &c->latest;
        unsigned attempt = container_attempt(c->life);

        if (!container_has_process(c->life))
                ;
        else if (!latest->is_known || latest->attempt != attempt)
                container_on_start_failed(c->life, attempt, /* by_runtime= */ false,
                                          "the connection to the shim broke");
        else
                on_container_event(c, &(SandboxEvent){
                                              .type = latest->type,
                                              .attempt = attempt,
                                              .message = latest->message,
                                              .runtime_failed = latest->runtime_failed,
                                              .exit_code = latest->exit.exit_code,
                                              .oom_killed = latest->exit.oom_killed,
                                              .started_at = latest->exit.started_at,
                                              .finished_at = latest->exit.finished_at,
                                      });
        replayed_done(latest);
        replayed_done(&c->previous);
}

static void on_synced(PodLife *life, bool is_ready) {
        bool is_new = life->phase == PHASE_SYNCING;

        life->must_clean = false;
        life->retry_timer = sd_event_source_disable_unref(life->retry_timer);
        if (is_new)
                life->phase = PHASE_READY;
        if (life->attachment) {
                attachment_interrupt(life->attachment);
                if (pod_life_has_network(life))
                        attachment_hold(life->attachment, life->sandbox);
        }
        pod_life_resume(life, is_ready);
        for (size_t i = 0; is_ready && i < life->n_containers; i++)
                if (is_new)
                        adopt_container(&life->containers[i]);
                else
                        reconcile_container(&life->containers[i]);
}

static void log_ended(const PodContainer *c, unsigned attempt) {
        cleanup_free char *log_dir = pod_log_dir(c->pod->context->bundle, c->pod->pod);
        cleanup_free char *directory = log_dir ? path_join(log_dir, c->spec->name) : NULL;

        if (directory)
                c->pod->context->on_log_ended(directory, attempt, c->pod->context->userdata);
}

static void on_container_event(PodContainer *c, const SandboxEvent *event) {
        PodContext *context = c->pod->context;
        ContainerExit end = exit_of(event);

        switch (event->type) {
        case SANDBOX_STARTED:
                context->n_containers_started++;
                context->n_containers_restarted += event->attempt > 0;
                container_on_started(c->life, event->attempt, event->started_at);
                break;
        case SANDBOX_START_FAILED:
                context->n_start_errors++;
                container_on_start_failed(c->life, event->attempt, event->runtime_failed,
                                          strna(event->message));
                break;
        case SANDBOX_EXITED:
                log_ended(c, event->attempt);
                container_on_exited(c->life, event->attempt, &end);
                break;
        case SANDBOX_STARTING:
        case SANDBOX_DELETED:
        case SANDBOX_EXEC_DONE:
        case SANDBOX_SYNCED:
        case SANDBOX_READY:
        case SANDBOX_SETUP_FAILED:
        case SANDBOX_LOST:
                break;
        }
}

static int on_retry_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        PodLife *life = userdata;

        life->phase = life->retry_phase;
        pod_life_mark(life);
        return 0;
}

void pod_life_retry_later(PodLife *life, PodLifePhase phase) {
        int r;

        life->retry_delay_usec = back_off_next(life->retry_delay_usec, &sandbox_back_off);
        life->retry_phase = phase;
        life->retry_stays = !life->is_wanted;
        life->retry_timer = sd_event_source_disable_unref(life->retry_timer);
        r = sd_event_add_time_relative(life->context->event, &life->retry_timer, CLOCK_BOOTTIME,
                                       life->retry_delay_usec, 0, on_retry_timer, life);
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the retry of pod '%s'", life->description);
        life->phase = PHASE_RETRY;
}

static void on_sandbox_event(Sandbox *sandbox, const SandboxEvent *event, void *userdata) {
        PodLife *life = userdata;
        PodContainer *c = find_container(life, event->name);

        if (event->type == SANDBOX_SYNCED)
                on_synced(life, event->ready);
        else if (event->type == SANDBOX_READY)
                pod_life_on_ready(life);
        else if (event->type == SANDBOX_EXEC_DONE && life->attachment)
                (void) attachment_handle(life->attachment, event);
        else if (event->type == SANDBOX_SETUP_FAILED) {
                pod_life_set_trouble(life, event->message);
                pod_life_retry_later(life, PHASE_READY); /* its shim is there; see step_ready() */
        } else if (event->type == SANDBOX_LOST)
                life->sandbox_is_lost = true;
        else if (c && event->replayed)
                remember(c, event);
        else if (c)
                on_container_event(c, event);
        pod_life_mark(life);
}

/* ---- what is due ---- */

static void stop_retry(PodLife *life) {
        life->retry_timer = sd_event_source_disable_unref(life->retry_timer);
        life->retry_delay_usec = 0;
}

static void step_lost(PodLife *life) {
        bool was_expected = life->phase == PHASE_ENDING;

        life->sandbox_is_lost = false;
        life->sandbox = sandbox_free(life->sandbox);
        if (life->attachment)
                attachment_lose(life->attachment);
        life->retry_timer = sd_event_source_disable_unref(life->retry_timer);
        life->phase = PHASE_LOST;
        if (!was_expected)
                log_warning("The shim of pod '%s' ended, ending its containers", life->description);
        for (size_t i = 0; i < life->n_containers; i++) {
                log_ended(&life->containers[i], container_attempt(life->containers[i].life));
                container_on_sandbox_lost(life->containers[i].life, now_realtime_usec());
        }
}

static void on_cleaned(const ChildResult *result, void *userdata) {
        PodLife *life = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r = child_explain(result, "Cleaning up", &error);

        life->cleanup = NULL;
        if (r < 0) {
                pod_life_set_trouble(life, error_message(&error, r));
                pod_life_retry_later(life, PHASE_LOST);
        } else {
                life->must_clean = false;
                if (life->is_wanted)
                        life->phase = PHASE_NONE;
                else if (life->cleanup_is_whole)
                        life->phase = PHASE_GONE;
                else /* what was spared goes when the network has gone, which takes a shim */
                        life->phase = pod_life_has_network(life) ? PHASE_NONE : PHASE_LOST;
        }
        pod_life_mark(life);
}

/* Ends and removes what the pod left; all of it when it is not wanted, else its processes, its
 * mounts and its containers' writable layers, but not its volumes, its record and its logs. */
static int start_cleanup(PodLife *life, Error *reterr) {
        const BundleConfig *config = life->context->bundle;
        const char *uid = life->pod->metadata.uid;
        cleanup_free char *run_dir = pod_run_dir(config, uid),
                          *state_dir = pod_state_dir(config, uid);
        cleanup_free char *containers = state_dir ? path_join(state_dir, "containers") : NULL;
        cleanup_free char *log_dir = pod_log_dir(config, life->pod);
        cleanup_free char *cgroup =
                pod_cgroup_path(config->cgroup_root, pod_qos_class(&life->pod->spec), uid);
        const char *directories[] = { run_dir, containers, log_dir, state_dir };

        if (!run_dir || !containers || !log_dir || !cgroup)
                return -ENOMEM;
        life->cleanup_is_whole = !life->is_wanted && !pod_life_has_network(life);
        if (life->cleanup_is_whole)
                bundle_remove_log_links(config, life->pod);
        return sandbox_cleanup(
                life->context->sandbox,
                &(SandboxCleanup){
                        .cgroup = cgroup,
                        .directories = directories,
                        .n_directories = life->cleanup_is_whole ? N_ELEMENTS(directories) : 2,
                },
                on_cleaned, life, &life->cleanup, reterr);
}

static void step_cleanup(PodLife *life) {
        cleanup_error Error error = ERROR_NULL;
        int r = start_cleanup(life, &error);

        if (r < 0) {
                pod_life_set_trouble(life, error_message(&error, r));
                pod_life_retry_later(life, PHASE_LOST);
                return;
        }
        life->phase = PHASE_CLEANING;
}

/* Restart counts that nobody remembers are in the names of the logs. */
static void recover_attempts(PodLife *life) {
        for (size_t i = 0; i < life->n_containers; i++) {
                PodContainer *c = &life->containers[i];
                int last =
                        bundle_last_logged_attempt(life->context->bundle, life->pod, c->spec->name);
                ContainerExit unknown = { .exit_code = 137, .is_unknown = true };

                if (last < 0 || container_attempt(c->life) > 0 || !container_is_waiting(c->life))
                        continue;
                unknown.finished_at = unknown.started_at = now_realtime_usec();
                container_adopt(c->life, (unsigned) last + 1, /* is_used= */ false, 0);
                container_adopt_last(c->life, (unsigned) last, &unknown);
        }
}

static int start_sandbox(PodLife *life, Error *reterr) {
        int r = bundle_prepare_pod(life->context->bundle, life->pod, reterr);

        if (r < 0)
                return r;
        recover_attempts(life);
        if (life->attachment) /* an earlier shim's, of which we know by its record */
                attachment_lose(life->attachment);
        return sandbox_start(life->sandbox, life->pod->spec.host_network, /* host_ipc= */ false,
                             reterr);
}

static int find_or_start_sandbox(PodLife *life, Error *reterr) {
        int r = 0;

        if (!life->sandbox)
                r = sandbox_new(life->context->sandbox, life->pod->metadata.uid, on_sandbox_event,
                                life, &life->sandbox);
        if (r < 0)
                return r;
        r = sandbox_connect(life->sandbox, reterr);
        if (r != 0)
                return r;
        /* Nobody is there. What an earlier shim of this pod may have left is cleaned up first. */
        if (life->must_clean || (!life->is_wanted && !pod_life_has_network(life))) {
                life->sandbox = sandbox_free(life->sandbox);
                step_cleanup(life);
                return 0;
        }
        r = life->is_wanted ? start_sandbox(life, reterr) : pod_life_start_undertaker(life, reterr);
        return r < 0 ? r : 1;
}

static void step_none(PodLife *life) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        r = find_or_start_sandbox(life, &error);
        if (r < 0) {
                pod_life_set_trouble(life, error_message(&error, r));
                life->sandbox = sandbox_free(life->sandbox);
                pod_life_retry_later(life, PHASE_NONE);
        } else if (r > 0)
                life->phase = PHASE_SYNCING;
}

static bool all_finished(const PodLife *life) {
        for (size_t i = 0; i < life->n_containers; i++)
                if (!container_is_finished(life->containers[i].life))
                        return false;
        return true;
}

static void step_unwanted_with_shim(PodLife *life) {
        for (size_t i = 0; i < life->n_containers; i++)
                container_stop(life->containers[i].life);
        if (all_finished(life))
                pod_life_end_sandbox(life);
}

static void step_ready(PodLife *life) {
        if (!life->is_wanted) {
                step_unwanted_with_shim(life);
                return;
        }
        if (life->trouble) { /* the setup failed and its time has come again */
                pod_life_ask_for_setup(life);
                return;
        }
        for (size_t i = 0; i < life->n_containers; i++)
                if (container_is_waiting(life->containers[i].life))
                        container_start(life->containers[i].life);
}

void pod_step(PodLife *life) {
        if (life->sandbox_is_lost)
                step_lost(life);

        switch (life->phase) {
        case PHASE_NONE:
                step_none(life);
                break;
        case PHASE_READY:
                step_ready(life);
                break;
        case PHASE_LOST:
                step_cleanup(life);
                break;
        case PHASE_SETTING_UP:
                if (!life->is_wanted)
                        step_unwanted_with_shim(life);
                break;
        case PHASE_RETRY:
                if (!life->is_wanted && !life->retry_stays) {
                        stop_retry(life);
                        life->phase = life->retry_phase;
                        pod_life_mark(life);
                }
                break;
        case PHASE_SYNCING:
        case PHASE_ATTACHING:
        case PHASE_DETACHING:
        case PHASE_ENDING:
        case PHASE_CLEANING:
        case PHASE_GONE:
                break;
        }
}

void pod_life_images_changed(PodLife *life) {
        for (size_t i = 0; i < life->n_containers; i++)
                container_retry_now(life->containers[i].life);
}

/* As the kubelet has it: while nothing runs, what ended last is both the latest and the previous.
 */
static int choose_attempt(const PodLife *life, const PodContainer *c, bool previous,
                          unsigned *ret_attempt, Error *reterr) {
        const char *pod = life->pod->metadata.name, *container = c->spec->name;
        int last = bundle_last_logged_attempt(life->context->bundle, life->pod, container);

        if (last < 0 && !previous)
                return error_setf(reterr, EAGAIN,
                                  "container \"%s\" in pod \"%s\" is waiting to start", container,
                                  pod);
        if (previous && container_has_process(c->life))
                last--;
        if (last < 0)
                return error_setf(reterr, ENOENT,
                                  "previous terminated container \"%s\" in pod \"%s\" not found",
                                  container, pod);
        *ret_attempt = (unsigned) last;
        return 0;
}

int pod_life_find_log(PodLife *life, const char *container, bool previous, char **ret_directory,
                      unsigned *ret_attempt, bool *ret_is_live, Error *reterr) {
        const PodContainer *c = find_container(life, container);
        cleanup_free char *log_dir = pod_log_dir(life->context->bundle, life->pod);
        unsigned attempt = 0;
        char *directory;
        int r;

        if (!log_dir)
                return -ENOMEM;
        if (!c)
                return error_setf(reterr, ENOENT, "container %s is not valid for pod %s", container,
                                  life->pod->metadata.name);
        r = choose_attempt(life, c, previous, &attempt, reterr);
        if (r < 0)
                return r;
        directory = path_join(log_dir, container);
        if (!directory)
                return -ENOMEM;
        *ret_directory = directory;
        *ret_attempt = attempt;
        *ret_is_live = container_has_process(c->life) && container_attempt(c->life) == attempt;
        return 0;
}
