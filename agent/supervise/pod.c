/* SPDX-License-Identifier: Apache-2.0 */
/* Pods step; containers are driven. The shim's events move the phase and the containers' machines
 * (pod-events.c); pod_step() then does whatever is due. A pod that is edited goes on as far as it
 * can (pod-edit.c); one that is replaced is two lives: the old one ends, then the new one starts.
 */

#include "agent/supervise/pod.h"

#include "agent/bundle/groups.h"
#include "agent/bundle/logs.h"
#include "agent/bundle/paths.h"
#include "agent/model/schema.h"
#include "agent/supervise/pod-internal.h"
#include "agent/supervise/slices.h"
#include "agent/supervise/tell.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/message-ids.h"

/* A sandbox that cannot be made is tried again after a second, then two, to a minute. */
static const BackOff sandbox_back_off = { 1 * USEC_PER_SEC, 60 * USEC_PER_SEC };

/* A shim answers in milliseconds. One that does not is not waited for with READY=1, and not at all
 * once the pod should have ended. */
#define ANSWER_USEC (10 * USEC_PER_SEC)
#define ENDING_USEC (60 * USEC_PER_SEC)

const char pod_seen_annotation[] = "kubernetes.io/config.seen";

void pod_life_mark(PodLife *life) {
        life->context->on_dirty(life->owner, life->context->userdata);
}

/* Each time, so that those who look see that it is still tried. */
static void tell_trouble(const PodLife *life, const char *message) {
        if (life->phase == PHASE_SETTING_UP)
                event_tell(life, NULL, POD_EVENT_WARNING, "FailedMount", "%s", message);
        else if (life->is_wanted)
                event_tell(life, NULL, POD_EVENT_WARNING, "FailedCreatePodSandBox",
                           "Failed to create pod sandbox: %s", message);
        else
                event_tell(life, NULL, POD_EVENT_WARNING, "FailedKillPod", "error killing pod: %s",
                           message);
}

void pod_life_set_trouble(PodLife *life, const char *message) {
        if (message)
                tell_trouble(life, message);
        if (streq_ptr(life->trouble, message))
                return;
        free(life->trouble);
        life->trouble = message ? strdup(message) : NULL;
        if (message) {
                log_mark(MESSAGE_POD_TROUBLE);
                log_warning("Pod '%s': %s", life->description, message);
        }
        pod_life_mark(life);
}

bool pod_life_is_ready(const PodLife *life) {
        return life->phase == PHASE_READY && !life->sandbox_is_lost;
}

void pod_life_set_phase(PodLife *life, PodLifePhase phase) {
        life->timer = sd_event_source_disable_unref(life->timer);
        life->phase = phase;
}

void pod_life_lose_sandbox(PodLife *life, const char *why) {
        pod_life_set_trouble(life, why);
        life->sandbox_is_lost = true;
        pod_life_mark(life);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        PodLife *life = userdata;

        if (life->phase == PHASE_RETRY)
                pod_life_set_phase(life, life->retry_phase);
        else if (life->is_wanted) {
                life->is_mute = true;
                pod_life_set_trouble(life, "its shim does not answer");
        } else
                pod_life_lose_sandbox(life, "its shim does not answer and is ended");
        pod_life_mark(life);
        return 0;
}

static void arm_timer(PodLife *life, uint64_t usec) {
        int r = sd_event_add_time_relative(life->context->event, &life->timer, CLOCK_BOOTTIME, usec,
                                           0, on_timer, life);

        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the timer of pod '%s'", life->description);
}

void pod_life_retry_later(PodLife *life, PodLifePhase phase) {
        life->retry_delay_usec = back_off_next(life->retry_delay_usec, &sandbox_back_off);
        life->retry_phase = phase;
        pod_life_set_phase(life, PHASE_RETRY);
        arm_timer(life, life->retry_delay_usec);
}

static void on_turn(void *userdata) {
        PodContainer *c = userdata;

        container_on_turn(c->life);
}

static int make_containers(PodLife *life) {
        const PodSpec *spec = &life->pod->spec;
        size_t n = pod_count_containers(spec);

        life->order = calloc(n, sizeof(*life->order));
        if (!life->order)
                return -ENOMEM;
        life->containers = calloc(n, sizeof(*life->containers));
        if (!life->containers)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                PodContainer *c = &life->containers[i];
                RestartTerms terms;
                int r;

                c->pod = life;
                c->spec = pod_nth_container(spec, i);
                c->turn = (Turn){ .on_turn = on_turn, .userdata = c };
                terms = restart_terms(spec, c->spec);
                r = container_new(&life->pod->metadata, c->spec, &terms,
                                  spec->init_containers.n > 0 ? "PodInitializing"
                                                              : "ContainerCreating",
                                  &life->context->back_off, &pod_container_driver, c, &c->life);
                if (r < 0)
                        return r;
                life->n_containers++;
        }
        return 0;
}

int pod_life_new_take(PodContext *context, Pod *pod, bool was_recorded, void *owner,
                      PodLife **ret) {
        const char *seen = string_map_get(&pod->metadata.annotations, pod_seen_annotation);
        PodLife *life = calloc(1, sizeof(*life));
        int r = -ENOMEM;

        if (!life)
                return -ENOMEM;
        life->context = context;
        life->owner = owner;
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
        if (was_recorded) {
                pod_life_load_failure(life);
                pod_life_load_ends(life);
                pod_life_load_deletion(life);
        }
        *ret = life;
        return 0;
}

static void free_container(PodContainer *c) {
        probers_stop(c);
        pod_container_drop_hook(c);
        turn_leave(&c->pod->context->turns, &c->turn);
        image_request_cancel(c->image_request);
        image_unref(c->image);
        pod_container_forget_volume_images(c);
        free(c->image_id);
        free(c->image_name);
        container_user_done(&c->user);
        sd_event_source_disable_unref(c->retry_timer);
        sd_event_source_disable_unref(c->turn_timer);
        pod_container_forget_replay(c);
        container_free(c->life);
}

PodLife *pod_life_free(PodLife *life) {
        if (!life)
                return NULL;
        for (size_t i = 0; i < life->n_containers; i++)
                free_container(&life->containers[i]);
        free(life->containers);
        free(life->order);
        for (size_t i = 0; i < N_POD_CONDITIONS; i++) {
                free(life->conditions[i].reason);
                free(life->conditions[i].message);
        }
        pod_life_forget_storage(life);
        pod_failure_done(&life->failure);
        child_free(life->cleanup);
        attachment_free(life->attachment);
        sandbox_free(life->sandbox);
        sd_event_source_disable_unref(life->timer);
        sd_event_source_disable_unref(life->end_timer);
        sd_event_source_disable_unref(life->resize_timer);
        sd_event_source_disable_unref(life->check_timer);
        free(life->ends);
        free(life->edit_trouble);
        free(life->resize_trouble);
        sd_event_source_disable_unref(life->order_timer);
        sd_event_source_disable_unref(life->deadline_timer);
        free(life->stale);
        free(life->trouble);
        free(life->rejection_message);
        free(life->description);
        pod_free(life->pod);
        free(life);
        return NULL;
}

static int on_overdue(sd_event_source *source, uint64_t usec, void *userdata) {
        PodLife *life = userdata;

        if (life->sandbox)
                pod_life_lose_sandbox(life, "its shim did not end it in time and is ended");
        return 0;
}

void pod_life_limit_end(PodLife *life, uint64_t grace_usec) {
        int r;

        life->end_timer = sd_event_source_disable_unref(life->end_timer);
        r = sd_event_add_time_relative(life->context->event, &life->end_timer, CLOCK_BOOTTIME,
                                       grace_usec + ENDING_USEC, 0, on_overdue, life);
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the timer of pod '%s'", life->description);
}

void pod_life_unwant(PodLife *life) {
        uint64_t grace_usec = pod_life_grace_usec(life);

        if (!life->is_wanted)
                return;
        life->is_wanted = false;
        life->deletion_time = now_realtime_usec() + grace_usec;
        log_info("Pod '%s' is not wanted any more, stopping it", life->description);
        if (life->phase == PHASE_RETRY) { /* what failed is not tried again, its end is */
                life->retry_delay_usec = 0;
                pod_life_set_phase(life, life->retry_phase);
        }
        pod_life_limit_end(life, grace_usec);
        pod_life_mark(life);
}

bool pod_life_is_wanted(const PodLife *life) {
        return life->is_wanted;
}

bool pod_life_is_gone(const PodLife *life) {
        return life->phase == PHASE_GONE;
}

bool pod_life_is_synced(const PodLife *life) {
        return (life->phase != PHASE_SYNCING || life->is_mute) &&
               !(life->phase == PHASE_NONE && life->must_clean);
}

const Pod *pod_life_pod(const PodLife *life) {
        return life->pod;
}

/* ---- what is due ---- */

/* One that ends before its pod was set up will most likely do so again. */
static bool is_early(const PodLife *life) {
        return life->phase == PHASE_SETTING_UP || life->phase == PHASE_ATTACHING ||
               (life->phase == PHASE_SYNCING && !life->must_clean);
}

static void step_lost(PodLife *life) {
        life->sandbox_is_lost = false;
        life->is_mute = false;
        life->sandbox = sandbox_free(life->sandbox);
        if (life->attachment)
                attachment_lose(life->attachment);
        life->was_lost_early = is_early(life);
        if (life->was_lost_early)
                pod_life_set_trouble(life, "its shim ended before the pod was set up");
        else if (life->phase != PHASE_ENDING) {
                event_tell(life, NULL, POD_EVENT_NORMAL, "SandboxChanged",
                           "Pod sandbox changed, it will be killed and re-created.");
                log_mark(MESSAGE_SHIM_ENDED);
                log_warning("The shim of pod '%s' ended, ending its containers", life->description);
        }
        pod_life_set_phase(life, PHASE_LOST);
        pod_life_end_containers(life);
}

static void after_cleanup(PodLife *life) {
        /* Of a pod that is not wanted the network may be left, which takes a shim to remove. */
        bool goes_on = life->is_wanted || pod_life_has_network(life);

        if (goes_on && life->was_lost_early)
                pod_life_retry_later(life, PHASE_NONE);
        else if (goes_on)
                pod_life_set_phase(life, PHASE_NONE);
        else /* what was spared for a pod that was wanted still then goes now */
                pod_life_set_phase(life, life->cleanup_is_whole ? PHASE_GONE : PHASE_LOST);
        life->was_lost_early = false;
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
                /* An edit may be looked at now, and asks who has ended. */
                for (size_t i = 0; i < life->n_containers; i++)
                        pod_container_recover(&life->containers[i]);
                after_cleanup(life);
        }
        pod_life_mark(life);
}

/* Ends and removes what the pod left; all of it when it is not wanted, else its processes, its
 * mounts and its containers' writable layers, but not its record and its logs, nor, unless it has
 * failed, its volumes. */
static int start_cleanup(PodLife *life, Error *reterr) {
        const BundleConfig *config = life->context->bundle;
        const char *uid = life->pod->metadata.uid;
        cleanup_free char *run_dir = pod_run_dir(config, uid),
                          *state_dir = pod_state_dir(config, uid);
        cleanup_free char *containers = state_dir ? path_join(state_dir, "containers") : NULL;
        cleanup_free char *log_dir = pod_log_dir(config, life->pod);
        cleanup_free char *cgroup = group_of_pod(config, pod_qos_class(&life->pod->spec), uid);
        cleanup_free char *volumes = state_dir ? path_join(state_dir, "volumes") : NULL;
        const char *directories[] = { run_dir, containers, volumes, log_dir, state_dir };

        if (!run_dir || !containers || !volumes || !log_dir || !cgroup)
                return -ENOMEM;
        life->cleanup_is_whole = !life->is_wanted && !pod_life_has_network(life);
        if (life->cleanup_is_whole) {
                bundle_remove_log_links(config, log_dir);
                slices_end(life->context, cgroup);
        }
        return sandbox_cleanup(
                life->context->sandbox,
                &(SandboxCleanup){
                        .uid = uid,
                        .cgroup = cgroup,
                        .directories = directories,
                        .n_directories = life->cleanup_is_whole ? N_ELEMENTS(directories)
                                         : pod_life_has_failed(life) && !life->failure.is_passing
                                                 ? 3
                                                 : 2,
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
        pod_life_set_phase(life, PHASE_CLEANING);
}

/* Restart counts that nobody remembers are in the names of the logs. */
void pod_container_recover(PodContainer *c) {
        int last = -1;

        if (container_is_waiting(c->life))
                last = bundle_last_logged_attempt(c->pod->context->bundle, c->pod->pod,
                                                  c->spec->name);
        if (last >= 0 && !pod_container_recover_end(c, (unsigned) last))
                container_recover(c->life, (unsigned) last, now_realtime_usec());
}

/* As the kubelet takes it where there is no SELinux. Told once in a pod's life. */
static void tell_of_labels(PodLife *life) {
        const PodSpec *spec = &life->pod->spec;
        bool has_label = spec->security_context.se_linux_options != NULL;

        for (size_t i = 0; i < life->n_containers; i++)
                has_label = has_label ||
                            life->containers[i].spec->security_context.se_linux_options != NULL;
        if (!has_label || life->context->bundle->has_se_linux || life->told_of_labels)
                return;
        life->told_of_labels = true;
        log_warning("Pod '%s': seLinuxOptions have no effect: SELinux is not enabled on this node",
                    life->description);
}

static int start_sandbox(PodLife *life, Error *reterr) {
        const PodContext *context = life->context;
        const char *runtime;
        int r = classes_check(&context->bundle->objects, &context->runtimes, life->pod, &runtime,
                              reterr);

        if (r >= 0)
                r = bundle_prepare_pod(context->bundle, life->pod, reterr);
        if (r < 0)
                return r;
        slices_set_pod(context, life->pod);
        sandbox_set_runtime(life->sandbox, runtime);
        tell_of_labels(life);
        if (life->attachment) /* an earlier shim's, of which we know by its record */
                attachment_lose(life->attachment);
        return sandbox_start(
                life->sandbox,
                &(SandboxStart){ .description = life->description,
                                 .host_network = life->pod->spec.host_network,
                                 .host_ipc = life->pod->spec.host_ipc,
                                 .has_systemd_cgroup = life->context->bundle->has_slices },
                reterr);
}

static int find_or_start_sandbox(PodLife *life, Error *reterr) {
        bool is_over;
        int r = 0;

        if (!life->sandbox)
                r = sandbox_new(life->context->sandbox, life->pod->metadata.uid, pod_life_on_event,
                                life, &life->sandbox);
        if (r < 0)
                return r;
        r = sandbox_connect(life->sandbox, reterr);
        if (r != 0)
                return r;
        is_over = !pod_life_goes_on(life);
        /* Nobody is there. What an earlier shim of this pod may have left is cleaned up first. */
        if (life->must_clean || (!life->is_wanted && !pod_life_has_network(life))) {
                life->sandbox = sandbox_free(life->sandbox);
                step_cleanup(life);
                return 0;
        }
        r = is_over ? pod_life_start_undertaker(life, reterr) : start_sandbox(life, reterr);
        return r < 0 ? r : 1;
}

static bool all_finished(const PodLife *life) {
        for (size_t i = 0; i < life->n_containers; i++)
                if (!container_is_finished(life->containers[i].life))
                        return false;
        return true;
}

/* Whether there is anything to start a shim for, or one that may have to be ended. */
static bool needs_sandbox(PodLife *life) {
        if (!life->is_wanted || life->must_clean)
                return true;
        for (size_t i = 0; i < life->n_containers; i++)
                pod_container_recover(&life->containers[i]);
        if (!pod_life_goes_on(life)) /* but its addresses are given back */
                return pod_life_has_network(life) && !life->failure.is_passing;
        pod_life_forget_order(life);
        return true;
}

static void step_none(PodLife *life) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (!needs_sandbox(life)) {
                pod_life_follow_order(life);
                return;
        }
        if (pod_life_goes_on(life) && !life->must_clean && !pod_life_is_admitted(life))
                return;
        r = find_or_start_sandbox(life, &error);
        if (r < 0) {
                pod_life_set_trouble(life, error_message(&error, r));
                life->sandbox = sandbox_free(life->sandbox);
                pod_life_retry_later(life, PHASE_NONE);
        } else if (r > 0) {
                pod_life_set_phase(life, PHASE_SYNCING);
                arm_timer(life, ANSWER_USEC);
        }
}

static void step_unwanted_with_shim(PodLife *life) {
        pod_life_follow_order(life);
        if (all_finished(life))
                pod_life_end_sandbox(life);
}

static void step_ready(PodLife *life) {
        if (!life->is_wanted || pod_life_has_failed(life)) {
                step_unwanted_with_shim(life);
                return;
        }
        if (life->trouble && !pod_life_is_ending(life)) { /* what failed is due again */
                if (pod_life_has_undertaker(life))
                        pod_life_end_sandbox(life);
                else
                        pod_life_ask_for_setup(life);
                return;
        }
        pod_life_restart_outdated(life);
        pod_life_follow_order(life);
}

static void step_phase(PodLife *life) {
        if (life->sandbox_is_lost)
                step_lost(life);
        pod_life_watch_deadline(life);

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
        case PHASE_SYNCING:
        case PHASE_ATTACHING:
        case PHASE_DETACHING:
        case PHASE_ENDING:
        case PHASE_CLEANING:
        case PHASE_GONE:
                break;
        }
        pod_life_watch_storage(life);
}

LogSubject pod_life_subject(const PodLife *life, const char *container) {
        const ObjectMeta *metadata = &life->pod->metadata;

        return (LogSubject){ metadata->namespace, metadata->name, metadata->uid, container };
}

void pod_step(PodLife *life) {
        LogSubject subject = pod_life_subject(life, NULL);
        LOG_ABOUT(&subject);

        step_phase(life);
        pod_life_keep_ends(life);
        for (size_t i = 0; i < life->n_containers; i++)
                probers_step(&life->containers[i]);
}

void pod_life_images_changed(PodLife *life) {
        for (size_t i = 0; i < life->n_containers; i++)
                container_retry_now(life->containers[i].life,
                                    pod_life_lets_start(&life->containers[i]));
}
