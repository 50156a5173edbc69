/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the lives, and steps the dirty ones once a turn of the loop: events only mark. What is gone
 * is swept at the same place, so that nobody is freed under his own feet. */

#include "agent/supervise/supervisor.h"

#include "agent/bundle/resources.h"
#include "agent/model/cover.h"
#include "agent/model/schema.h"
#include "agent/supervise/orphans.h"
#include "agent/supervise/record.h"
#include "agent/supervise/slices.h"
#include "agent/supervise/slot.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dir-sync.h"
#include "common/file.h"
#include "common/http.h"
#include "common/log.h"
#include "common/message-ids.h"

/* A pod that cannot be begun (its record cannot be written) is tried again after this. */
#define BEGIN_RETRY_USEC (5 * USEC_PER_SEC)

/* So long the pods are stepped before whoever else waits in the loop is heard. */
#define STEP_USEC (5 * USEC_PER_MSEC)

static const char *const written_names[] = { "record",   "failure", "ends",
                                             "deletion", "network", NULL };

static int on_step(sd_event_source *source, void *userdata);

void supervisor_schedule(Supervisor *s) {
        int r = sd_event_source_set_enabled(s->step_source, SD_EVENT_ONESHOT);

        if (r < 0)
                (void) log_error_errno(r, "Cannot schedule the next step");
}

void slot_mark(Slot *slot) {
        slot->is_dirty = true;
        supervisor_schedule(slot->supervisor);
}

static void on_dirty(void *slot, void *userdata) {
        slot_mark(slot);
}

static void on_log_ended(const char *directory, unsigned attempt, void *userdata) {
        Supervisor *s = userdata;

        s->callbacks->on_log_ended(directory, attempt, s->userdata);
}

static void on_event(const PodEvent *event, void *userdata) {
        Supervisor *s = userdata;

        if (s->callbacks->on_event)
                s->callbacks->on_event(event, s->userdata);
}

static int open_disk(Supervisor *s) {
        cleanup_free char *pods = path_join(s->context.bundle->state_dir, "pods");

        if (!pods)
                return -ENOMEM;
        return dir_sync_new(s->context.event, pods, written_names, &s->context.disk);
}

int supervisor_new(const SupervisorConfig *config, const SupervisorCallbacks *callbacks,
                   void *userdata, Supervisor **ret) {
        Supervisor *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->context = (PodContext){
                .event = config->event,
                .bundle = config->bundle,
                .sandbox = config->sandbox,
                .network = config->network,
                .runtimes = { config->sandbox->runtime_path, config->runtimes },
                .images = config->images,
                .back_off = config->back_off,
                .log_max_size = config->log_max_size,
                .log_max_files = config->log_max_files,
                .host_ip = config->host_ip,
                .node = config->node,
                .conditions = config->conditions,
                .on_dirty = on_dirty,
                .on_log_ended = on_log_ended,
                .on_event = on_event,
                .userdata = s,
        };
        turns_init(&s->context.turns, config->creating_max);
        s->callbacks = callbacks;
        s->userdata = userdata;
        s->orphans = orphans_new(&s->context);
        r = s->orphans ? open_disk(s) : -ENOMEM;
        if (r >= 0)
                r = sd_event_add_defer(config->event, &s->step_source, on_step, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->step_source, SD_EVENT_OFF);
        /* After all news of a turn, so that ten events cost one step. */
        if (r >= 0)
                r = sd_event_source_set_priority(s->step_source, SD_EVENT_PRIORITY_NORMAL + 10);
        if (r < 0) {
                supervisor_free(s);
                return r;
        }
        *ret = s;
        return 0;
}

static void slot_free(Slot *slot) {
        staging_free(slot->staging);
        pod_life_free(slot->life);
        pod_free(slot->next);
        free(slot->next_file);
        free(slot->file);
        sd_event_source_disable_unref(slot->retry_timer);
        free(slot->trouble);
        free(slot->description);
        free(slot->key);
        free(slot);
}

Supervisor *supervisor_free(Supervisor *s) {
        if (!s)
                return NULL;
        /* Whoever gives back his turn must not be handed on to one that is freed next. */
        s->context.turns.max = 0;
        while (s->slots) {
                Slot *slot = s->slots;

                s->slots = slot->following;
                slot_free(slot);
        }
        evictions_done(&s->evictions);
        http_free(s->context.http);
        orphans_free(s->orphans);
        sd_event_source_disable_unref(s->stage_timer);
        sd_event_source_disable_unref(s->step_source);
        dir_sync_free(s->context.disk);
        free(s);
        return NULL;
}

static int slot_key(const Pod *pod, char **ret) {
        return asprintf(ret, "%s/%s/", pod->metadata.namespace, pod->metadata.name) < 0 ? -ENOMEM
                                                                                        : 0;
}

/* Finds the slot of a name, or makes it at its place. */
static int get_slot(Supervisor *s, const Pod *pod, Slot **ret) {
        cleanup_free char *key = NULL;
        Slot **link = &s->slots, *slot;

        if (slot_key(pod, &key) < 0) {
                key = NULL;
                return -ENOMEM;
        }
        while (*link && strcmp((*link)->key, key) < 0)
                link = &(*link)->following;
        if (*link && streq((*link)->key, key)) {
                *ret = *link;
                return 0;
        }
        slot = calloc(1, sizeof(*slot));
        if (!slot)
                return -ENOMEM;
        slot->supervisor = s;
        slot->description = strndup(key, strlen(key) - 1);
        if (!slot->description) {
                free(slot);
                return -ENOMEM;
        }
        slot->key = TAKE_PTR(key);
        slot->following = *link;
        *link = slot;
        *ret = slot;
        return 0;
}

/* ---- what an earlier agent left ---- */

static int load_one(Supervisor *s, const char *uid,
                    void (*each)(const char *, const Pod *, void *)) {
        cleanup_with(record_done) Record record = { 0 };
        cleanup_error Error error = ERROR_NULL;
        Slot *slot;
        int r;

        r = record_load(s->context.bundle->state_dir, uid, &record, &error);
        if (r == -EBADMSG) {
                log_mark(MESSAGE_RECORD_DAMAGED);
                log_error("%s, setting it aside", error_message(&error, r));
                return record_set_aside(s->context.bundle->state_dir, uid, NULL);
        }
        if (r < 0)
                return r == -ENOENT ? 0 : r; /* an orphan, see orphans.h */
        r = get_slot(s, record.pod, &slot);
        if (r < 0)
                return r;
        each(record.file, record.pod, s->userdata);
        if (slot->life)
                return 0; /* the successor was recorded too; it comes again with the wishes */
        slot->generation = s->generation;
        r = pod_life_new_take(&s->context, record.pod, /* was_recorded= */ true, slot, &slot->life);
        if (r < 0)
                return r;
        record.pod = NULL;
        slot->file = TAKE_PTR(record.file);
        pod_life_read_outdated(slot->life, record.outdated);
        slot_mark(slot);
        return 0;
}

int supervisor_load(Supervisor *s, void (*each)(const char *file, const Pod *pod, void *userdata),
                    Error *reterr) {
        cleanup_free char *path = path_join(s->context.bundle->state_dir, "pods");
        cleanup_closedir DIR *dir = NULL;
        struct dirent *entry;

        if (!path)
                return -ENOMEM;
        dir = opendir(path);
        if (!dir && errno != ENOENT)
                return error_setf(reterr, errno, "cannot read %s: %s", path, strerror(errno));
        while (dir && (entry = readdir(dir))) {
                int r = entry->d_name[0] == '.' ? 0 : load_one(s, entry->d_name, each);

                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        (void) log_error_errno(r, "Cannot take up pod %s, ignoring it",
                                               entry->d_name);
        }
        return 0;
}

static bool is_known_uid(const char *uid, void *userdata) {
        const Supervisor *s = userdata;

        for (const Slot *slot = s->slots; slot; slot = slot->following)
                if ((slot->life && streq(pod_life_pod(slot->life)->metadata.uid, uid)) ||
                    (slot->next && streq(slot->next->metadata.uid, uid)))
                        return true;
        return false;
}

/* ---- wishes ---- */

void supervisor_begin(Supervisor *s) {
        s->generation++;
}

static int set_next_take(Slot *slot, const char *file, Pod *pod) {
        char *file_copy = strdup(file);

        if (!file_copy)
                return -ENOMEM;
        slot_forget_next(slot);
        slot->next = pod;
        slot->next_file = file_copy;
        return 0;
}

/* Already so, or to be so: then there is nothing to do, or just to go on. */
static int is_as_wanted(const Pod *there, const Pod *wanted) {
        cleanup_with(edit_plan_done) EditPlan plan = { 0 };
        int r = edit_plan(there, wanted, &plan);

        return r < 0 ? r : plan.effect == EDIT_NONE;
}

/* The pod is as the file has it; the record must name that file, for the day when it is broken. */
static int keep_as_it_is(Supervisor *s, Slot *slot, const char *file, Error *reterr) {
        cleanup_free char *copy = NULL;
        int r;

        slot_forget_next(slot);
        if (streq_ptr(slot->file, file))
                return 0;
        copy = strdup(file);
        if (!copy)
                return -ENOMEM;
        r = slot_store(s, slot, pod_life_pod(slot->life), file, NULL, reterr);
        if (r < 0)
                return r;
        free(slot->file);
        slot->file = TAKE_PTR(copy);
        return 0;
}

static int want_take(Supervisor *s, Slot *slot, const char *file, Pod **pod, Error *reterr) {
        bool is_wanted = slot->life && pod_life_is_wanted(slot->life);
        int r = is_wanted ? is_as_wanted(pod_life_pod(slot->life), *pod) : 0;

        if (r > 0)
                return keep_as_it_is(s, slot, file, reterr);
        if (r >= 0 && slot->next)
                r = is_as_wanted(slot->next, *pod);
        if (r != 0 && (r < 0 || streq(slot->next_file, file)))
                return r;
        r = set_next_take(slot, file, *pod);
        if (r < 0)
                return r;
        *pod = NULL;
        slot_mark(slot);
        return 0;
}

int supervisor_want(Supervisor *s, const char *file, const Pod *wish, Error *reterr) {
        cleanup_with(pod_freep) Pod *pod = NULL;
        Slot *slot;
        int r = get_slot(s, wish, &slot);

        if (r < 0)
                return r;
        slot->generation = s->generation;
        r = pod_copy(wish, &pod);
        if (r >= 0)
                r = classes_resolve(&s->context.bundle->objects,
                                    slot->life ? pod_life_pod(slot->life) : NULL, pod);
        return r < 0 ? r : want_take(s, slot, file, &pod, reterr);
}

bool supervisor_is_named(const Supervisor *s, const char *namespace, const char *pod) {
        size_t length = strlen(namespace);

        for (const Slot *slot = s->slots; slot; slot = slot->following)
                if (slot->generation == s->generation &&
                    strncmp(slot->description, namespace, length) == 0 &&
                    slot->description[length] == '/' && streq(slot->description + length + 1, pod))
                        return true;
        return false;
}

/* The weight of all Burstable pods together follows what they ask for. */
static void update_qos(Supervisor *s) {
        cleanup_error Error error = ERROR_NULL;
        int64_t sum = 0;
        int r;

        for (Slot *slot = s->slots; slot; slot = slot->following)
                if (slot->life && pod_qos_class(&pod_life_pod(slot->life)->spec) == QOS_BURSTABLE)
                        sum += MIN(pod_milli_cpu_request(&pod_life_pod(slot->life)->spec),
                                   INT32_MAX);
        s->has_qos_groups = true;
        s->context.burstable_milli_cpu = sum;
        slices_set_qos(&s->context);
        r = bundle_update_qos(s->context.bundle, sum, &error);
        if (r < 0)
                log_warning("Cannot set the weight of the QoS groups: %s",
                            error_message(&error, r));
}

void supervisor_sweep(Supervisor *s) {
        for (Slot *slot = s->slots; slot; slot = slot->following) {
                if (slot->generation == s->generation)
                        continue;
                slot_forget_next(slot);
                if (slot->life)
                        pod_life_unwant(slot->life);
        }
        supervisor_schedule(s);
        if (!s->has_swept_orphans)
                orphans_sweep(s->orphans, is_known_uid, s);
        s->has_swept_orphans = true;
}

void supervisor_objects_changed(Supervisor *s, bool (*concerns)(const Pod *, void *),
                                void *userdata) {
        for (Slot *slot = s->slots; slot; slot = slot->following) {
                if (slot->life && (!concerns || concerns(pod_life_pod(slot->life), userdata)))
                        pod_life_objects_changed(slot->life);
                if (slot->staging && (!concerns || concerns(slot->next, userdata)))
                        slot_mark(slot);
        }
}

void supervisor_node_changed(Supervisor *s) {
        for (Slot *slot = s->slots; slot; slot = slot->following)
                slot_mark(slot);
}

int supervisor_stage(Supervisor *s, Pod *pod, void (*on_news)(void *userdata), void *userdata,
                     Staging **ret) {
        int r = classes_resolve(&s->context.bundle->objects, /* running= */ NULL, pod);

        return r < 0 ? r : staging_new(&s->context, pod, on_news, userdata, ret);
}

void supervisor_images_changed(Supervisor *s) {
        for (Slot *slot = s->slots; slot; slot = slot->following) {
                if (slot->life)
                        pod_life_images_changed(slot->life);
                if (slot->staging)
                        slot_retry_staging(slot);
        }
}

/* ---- the step ---- */

static void finish_life(Supervisor *s, Slot *slot) {
        s->callbacks->on_pod(pod_life_pod(slot->life), false, /* is_gone= */ true, s->userdata);
        log_info("Pod '%s' is gone", slot->description);
        slot->life = pod_life_free(slot->life);
        free(slot->file);
        slot->file = NULL;
        slot->was_told = false;
        s->qos_is_due = true;
}

static int begin_life(Supervisor *s, Slot *slot, Error *reterr) {
        int r;

        if (orphans_have(s->orphans, slot->next->metadata.uid))
                return error_setf(reterr, EBUSY, "what is left of it is still being cleaned up");
        r = pod_begin_anew(slot->next);
        if (r >= 0)
                r = slot_store(s, slot, slot->next, slot->next_file, NULL, reterr);
        if (r >= 0)
                r = pod_life_new_take(&s->context, slot->next, /* was_recorded= */ false, slot,
                                      &slot->life);
        if (r < 0)
                return r;
        slot->next = NULL;
        slot->file = TAKE_PTR(slot->next_file);
        log_info("Pod '%s' of %s begins", slot->description, slot->file);
        slot_forget_next(slot);
        s->n_pods_started++;
        s->qos_is_due = true;
        return 0;
}

static int on_begin_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        Slot *slot = userdata;

        slot_mark(slot);
        return 0;
}

/* NULL: none. Each is said once, not at each try. */
static void set_trouble(Slot *slot, const char *trouble) {
        if (streq_ptr(slot->trouble, trouble))
                return;
        free(slot->trouble);
        slot->trouble = trouble ? strdup(trouble) : NULL;
        if (trouble) {
                log_mark(MESSAGE_POD_NOT_BEGUN);
                log_error("Cannot begin pod '%s', trying again every %us: %s", slot->description,
                          (unsigned) (BEGIN_RETRY_USEC / USEC_PER_SEC), trouble);
        }
}

static void begin_or_retry(Supervisor *s, Slot *slot) {
        cleanup_error Error error = ERROR_NULL;
        int r = begin_life(s, slot, &error);

        slot->retry_timer = sd_event_source_disable_unref(slot->retry_timer);
        set_trouble(slot, r < 0 ? error_message(&error, r) : NULL);
        if (r < 0)
                (void) sd_event_add_time_relative(s->context.event, &slot->retry_timer,
                                                  CLOCK_BOOTTIME, BEGIN_RETRY_USEC, 0,
                                                  on_begin_retry, slot);
}

static void step_slot(Supervisor *s, Slot *slot) {
        bool is_new = !slot->was_told;

        slot->is_dirty = false;
        /* First, so that nothing is started that an edit stops. */
        if (slot->life && slot->next && !s->stages)
                slot_consider_edit(s, slot);
        if (slot->life) {
                pod_step(slot->life);
                if (pod_life_is_gone(slot->life))
                        finish_life(s, slot);
        }
        if (!slot->life && slot->next && !s->stages) {
                begin_or_retry(s, slot);
                is_new = true;
                if (slot->life)
                        pod_step(slot->life);
        }
        if (!slot->life && slot->next && s->stages)
                supervisor_refuse(s, slot);
        if (!slot->life)
                return;
        slot->was_told = true;
        s->callbacks->on_pod(pod_life_pod(slot->life), is_new, false, s->userdata);
}

/* Gives whether any slot is left. */
static bool sweep_slots(Supervisor *s) {
        Slot **link = &s->slots;

        while (*link) {
                Slot *slot = *link;

                if (slot->life || slot->next) {
                        link = &slot->following;
                        continue;
                }
                *link = slot->following;
                slot_free(slot);
        }
        return s->slots != NULL;
}

static int on_step(sd_event_source *source, void *userdata) {
        Supervisor *s = userdata;
        uint64_t end = now_boottime_usec() + STEP_USEC;

        if (s->slots && !s->has_qos_groups) /* before there is anything in them */
                update_qos(s);
        for (Slot *slot = s->slots; slot; slot = slot->following) {
                if (!slot->is_dirty)
                        continue;
                if (now_boottime_usec() > end) { /* five hundred that begin at once take a while */
                        supervisor_schedule(s);
                        break;
                }
                step_slot(s, slot);
        }
        if (!sweep_slots(s)) {
                slices_remove_empty(&s->context, /* all= */ true);
                s->has_qos_groups = false;
        } else if (s->qos_is_due) {
                update_qos(s);
                slices_remove_empty(&s->context, /* all= */ false);
        }
        s->qos_is_due = false;
        if (s->stages)
                supervisor_follow_shutdown(s);
        return 0;
}

/* ---- questions ---- */

/* By its full name, or that of the pod for which it stands. */
static bool is_called(const Pod *pod, const char *name) {
        cleanup_free char *covered = cover_name(pod);

        return streq(pod->metadata.name, name) || streq_ptr(covered, name);
}

/* The one with a life; or NULL, said. */
static Slot *find_living(Supervisor *s, const char *namespace, const char *pod, Error *reterr) {
        for (Slot *slot = s->slots; slot; slot = slot->following) {
                const Pod *life = slot->life ? pod_life_pod(slot->life) : NULL;

                if (life && streq(life->metadata.namespace, namespace) && is_called(life, pod))
                        return slot;
        }
        (void) error_setf(reterr, ENOENT, "pods \"%s\" not found", pod);
        return NULL;
}

int supervisor_find_log(Supervisor *s, const char *namespace, const char *pod,
                        const char *container, bool previous, char **ret_directory,
                        unsigned *ret_attempt, bool *ret_is_live, Error *reterr) {
        Slot *slot = find_living(s, namespace, pod, reterr);

        return slot ? pod_life_find_log(slot->life, container, previous, ret_directory, ret_attempt,
                                        ret_is_live, reterr)
                    : -ENOENT;
}

int supervisor_session(Supervisor *s, const char *namespace, const char *pod, const char *container,
                       const SandboxSession *session, int socket_fd, Error *reterr) {
        Slot *slot = find_living(s, namespace, pod, reterr);

        return slot ? pod_life_session(slot->life, container, session, socket_fd, reterr) : -ENOENT;
}

int supervisor_delete(Supervisor *s, const char *namespace, const char *pod, int64_t grace_seconds,
                      Error *reterr) {
        Slot *slot = find_living(s, namespace, pod, reterr);

        if (!slot)
                return -ENOENT;
        pod_life_delete(slot->life, grace_seconds);
        return 0;
}

bool supervisor_is_synced(const Supervisor *s) {
        for (const Slot *slot = s->slots; slot; slot = slot->following)
                if (slot->life && !pod_life_is_synced(slot->life))
                        return false;
        return true;
}

bool supervisor_is_empty(const Supervisor *s) {
        return !s->slots && orphans_are_gone(s->orphans);
}

SupervisorCounts supervisor_counts(const Supervisor *s) {
        SupervisorCounts counts = {
                .pods_started = s->n_pods_started,
                .containers_started = s->context.n_containers_started,
                .containers_restarted = s->context.n_containers_restarted,
                .containers_start_errors = s->context.n_start_errors,
        };

        for (const Slot *slot = s->slots; slot; slot = slot->following) {
                counts.pods += slot->life != NULL;
                counts.pods_wanted += slot->next || (slot->life && pod_life_is_wanted(slot->life));
        }
        return counts;
}

void supervisor_each_probe(const Supervisor *s, probe_sample_t each, void *userdata) {
        for (const Slot *slot = s->slots; slot; slot = slot->following)
                if (slot->life)
                        pod_life_each_probe(slot->life, each, userdata);
}
