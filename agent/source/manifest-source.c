/* SPDX-License-Identifier: Apache-2.0 */

/* The helper leaves new manifests in "next", verified and synced. If they can be used, "next" and
 * "current" are exchanged at once, so that after a crash or a power cut "current" is either the old
 * or the new content, and complete. The timer runs only while no helper runs, and wakes the agent
 * only for requests. */

#include "agent/source/manifest-source.h"

#include "agent/model/day-window.h"
#include "agent/source/source-answer.h"
#include "agent/source/source-rollback.h"
#include "common/back-off.h"
#include "common/child.h"
#include "common/cleanup.h"
#include "common/clock-watch.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/fsync-queue.h"
#include "common/log.h"
#include "common/memory-trim-timer.h"
#include "common/stick-watch.h"
#include "common/text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sysexits.h>
#include <time.h>

enum {
        ANSWER_BYTES_MAX = 16 * 1024,
        IN_USE_BYTES_MAX = 256 * 1024,
        ACCURACY_PARTS = 20, /* fractions of a wait */
        RANDOM_STEPS = 1000
};

#define FIRST_WAIT_MAX_USEC (300 * USEC_PER_SEC)

struct ManifestSource {
        ManifestSourceConfig config;
        char *directory;
        FsyncQueue *sync;
        sd_event_source *timer;
        ClockWatch *clock_watch;
        Child *child;
        bool is_clock_set;  /* the clock was set after the child was started */
        char *error;        /* why it has failed; NULL: it has not failed */
        SourceInUse in_use; /* the content of "current" */
        SourceInUse other;  /* the content of "next" */
        SourceRollback rollback;
        bool is_on_trial;
        char *refusal;           /* why "next" could not be used; NULL: nothing was refused */
        StickWatch *stick_watch; /* else NULL */
        bool is_absent;          /* no USB stick is mounted: nothing is fetched until one appears */
        bool is_preparing;       /* images for "next" are being fetched, so the source is not
                                  * contacted */
        bool is_pending;         /* "next" can be used when everything that it needs is on this
                                  * node */
        char *progress;          /* progress of the fetch, for the status */
        uint64_t since;          /* realtime; of the last transition */
        uint64_t succeeded;      /* realtime */
};

/* ---- status ---- */

/* Fetched data is more relevant than an earlier failure. */
static const char *find_source_message(ManifestSource *source) {
        cleanup_free char *progress = NULL;

        if (!source->is_preparing)
                return source->error ? source->error : source->in_use.summary;
        progress = source->config.describe_progress(source->config.userdata);
        free(source->progress);
        source->progress =
                text_format("%s%sfetching index %" PRId64 "%s%s", strna(source->in_use.summary),
                            source->in_use.summary ? "; " : "", source->other.number,
                            progress ? ": " : "", strna(progress));
        return source->progress;
}

NodeSourceStatus manifest_source_status(ManifestSource *source) {
        return (NodeSourceStatus){ .name = source->config.name,
                                   .message = find_source_message(source),
                                   .number = source->in_use.number,
                                   .has_failed = source->error != NULL,
                                   .is_refused = source->error && source->refusal &&
                                                 streq(source->error, source->refusal),
                                   .since = source->since,
                                   .succeeded = source->succeeded };
}

static void replace_source_text(char **text, const char *by) {
        char *copy = by ? strdup(by) : NULL;

        free(*text);
        *text = copy;
}

/* NULL: no failure. */
static void set_source_error(ManifestSource *source, const char *text) {
        bool is_first = source->since == 0, has_failed = source->error != NULL;
        NodeSourceStatus status;

        if (!text)
                source->succeeded = now_realtime_usec();
        if (!is_first && streq_ptr(source->error, text))
                return;
        replace_source_text(&source->error, text);
        if (is_first || has_failed != (text != NULL))
                source->since = now_realtime_usec();
        status = manifest_source_status(source);
        source->config.on_status(&status, source->config.userdata);
}

/* ---- the answer ---- */

static int open_source_directory(const ManifestSource *source) {
        int fd = open(source->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

static int open_source_manifests(const ManifestSource *source, const char *path) {
        cleanup_close int fd = open_source_directory(source);

        return fd < 0 ? fd : open_beneath(fd, path, O_RDONLY | O_DIRECTORY, 0);
}

int manifest_source_open_current(const ManifestSource *source) {
        return open_source_manifests(source, "current/manifests");
}

/* The helper's record. Without it, the status has fewer details. */
static void read_source_state(int fd, const char *path, SourceInUse *ret) {
        cleanup_free char *text = NULL;
        size_t length;

        source_in_use_done(ret);
        if (read_file_at(fd, path, IN_USE_BYTES_MAX, &text, &length) >= 0)
                source_in_use_parse(text, length, ret);
}

static void read_what_is_in_use(ManifestSource *source) {
        cleanup_close int fd = open_source_directory(source);

        if (fd < 0)
                return;
        read_source_state(fd, "current/source.json", &source->in_use);
        read_source_state(fd, "next/source.json", &source->other);
        source_rollback_load(fd, &source->rollback);
        source->is_on_trial =
                source_is_on_trial(fd, &source->in_use, &source->other, &source->rollback);
}

static int exchange_next_and_current(ManifestSource *source) {
        cleanup_close int fd = open_source_directory(source);

        if (fd < 0)
                return fd;
        if (renameat2(fd, "next", fd, "current", RENAME_EXCHANGE) < 0 &&
            (errno != ENOENT || renameat(fd, "next", fd, "current") < 0))
                return -errno;
        fsync_queue_add(source->sync, source->config.name);
        read_what_is_in_use(source);
        return 0;
}

/* An index that was rolled back is not used again. */
static int check_rolled_back(ManifestSource *source, Error *reterr) {
        read_what_is_in_use(source);
        if (!source->rollback.sha256 || !streq_ptr(source->rollback.sha256, source->other.sha256))
                return 0;
        return error_setf(reterr, EBADMSG, "%s", source->rollback.reason);
}

/* The manifests are complete, and everything that they need is on this node. */
static int use_new_manifests(ManifestSource *source, Error *reterr) {
        cleanup_close int fd = open_source_manifests(source, "next/manifests");
        int r = fd < 0 ? error_prefixf(reterr, fd, "%s/next", source->directory) : 0;

        if (r < 0)
                return r;
        DIE_AT("source.prepared");
        r = exchange_next_and_current(source);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", source->directory);
        log_info("Using new manifests of %s%s%s", source->config.name,
                 source->in_use.summary ? ": " : "", strna(source->in_use.summary));
        source->config.on_accepted(fd, source->config.userdata);
        return 0;
}

/* 0; or -errno, in which case the manifests are refused. */
static int check_new_manifests(ManifestSource *source, Error *reterr) {
        cleanup_close int fd = open_source_manifests(source, "next/manifests");
        int r = fd < 0 ? error_prefixf(reterr, fd, "%s/next", source->directory)
                       : check_rolled_back(source, reterr);

        return r < 0 ? r : source->config.check(fd, reterr, source->config.userdata);
}

/* 1: everything that they need is on this node; 0: it is being fetched; or -errno. */
static int prepare_new_manifests(ManifestSource *source, Error *reterr) {
        cleanup_close int fd = open_source_manifests(source, "next/manifests");
        int r = fd < 0 ? error_prefixf(reterr, fd, "%s/next", source->directory) : 0;

        if (r >= 0)
                r = source->config.prepare(fd, reterr, source->config.userdata);
        source->is_preparing = r == 0;
        source->is_pending = r < 0;
        return r;
}

/* 1: the manifests are in use; 0: they need something that is being fetched; or -errno. */
static int accept_new_manifests(ManifestSource *source, Error *reterr) {
        int r = check_new_manifests(source, reterr);

        replace_source_text(&source->refusal, r < 0 ? error_message(reterr, r) : NULL);
        source->is_pending = false;
        if (r >= 0)
                r = prepare_new_manifests(source, reterr);
        if (r <= 0)
                return r;
        r = use_new_manifests(source, reterr);
        if (r < 0)
                replace_source_text(&source->refusal, error_message(reterr, r));
        return r < 0 ? r : 1;
}

/* An unchanged response may be in "next", and not in use yet. */
static void take_source_answer(ManifestSource *source, const ChildResult *result) {
        cleanup_error Error error = ERROR_NULL;
        SourceAnswer answer = { 0 };
        int r = source_answer_parse(result->output, result->output_length, &answer, &error);

        if (r >= 0 && (answer.is_new || source->is_pending))
                r = accept_new_manifests(source, &error);
        if (!source->is_preparing)
                set_source_error(source, r < 0 ? error_message(&error, r) : source->refusal);
}

static void on_source_asked(const ChildResult *result, void *userdata);
static void schedule_next_question(ManifestSource *source);

/* ---- times of requests ---- */

static int arm_source_timer(ManifestSource *source, uint64_t usec) {
        return event_timer_arm_inexact(source->timer, usec, ACCURACY_PARTS);
}

static uint64_t random_part(uint64_t usec, uint32_t random) {
        return usec / RANDOM_STEPS * (random % (RANDOM_STEPS + 1));
}

static void schedule_source(ManifestSource *source, uint64_t usec) {
        int r = arm_source_timer(source,
                                 usec + random_part(source->config.jitter_usec, back_off_random()));

        if (r < 0)
                (void) log_error_errno(r, "Cannot set the timer of %s", source->config.name);
}

/* The delay in microseconds; 0: a request may be sent now. A node without manifests does not wait.
 */
static uint64_t wait_for_window(const ManifestSource *source) {
        time_t now = (time_t) (now_realtime_usec() / USEC_PER_SEC);
        DayWindow window;
        struct tm local;

        if (!source->config.window || !source->in_use.is_there ||
            day_window_parse(source->config.window, &window) < 0 || !localtime_r(&now, &local))
                return 0;
        return day_window_wait(&window, (unsigned) (local.tm_hour * 3600 + local.tm_min * 60 +
                                                    MIN(local.tm_sec, 59))) *
               USEC_PER_SEC;
}

bool manifest_source_may_ask(const ManifestSource *source, Error *reterr) {
        if (wait_for_window(source) == 0)
                return true;
        (void) error_setf(reterr, ECANCELED, "the hours of the day %s are over",
                          source->config.window);
        return false;
}

char *manifest_source_path(const ManifestSource *source, const char *which) {
        return path_join(source->directory, which);
}

void manifest_source_on_prepared(ManifestSource *source, int r, const Error *error) {
        cleanup_error Error own = ERROR_NULL;

        source->is_preparing = false;
        source->is_pending = r < 0;
        if (r >= 0)
                r = use_new_manifests(source, &own);
        if (r != -ECANCELED)
                set_source_error(source,
                                 r < 0 ? error_message(own.message ? &own : error, r) : NULL);
        schedule_next_question(source);
}

static int start_source_helper(ManifestSource *source, Error *reterr) {
        cleanup_close int settings = source->config.open_settings(
                source->refusal != NULL || source->is_pending, source->config.userdata);
        cleanup_free char *option = NULL, *helper = strdup(source->config.helper_path);

        if (settings < 0)
                return settings;
        option = helper ? text_format("--store=%s", source->directory) : NULL;
        if (!option)
                return -ENOMEM;
        return child_spawn(
                source->config.event,
                &(ChildSpec){ .argv = (char *[]){ helper, (char[]){ "source" }, option, NULL },
                              .output_max = ANSWER_BYTES_MAX,
                              .timeout_usec = source->config.timeout_usec,
                              .input_fd = settings },
                on_source_asked, source, &source->child, reterr);
}

static void ask_source(ManifestSource *source) {
        cleanup_error Error error = ERROR_NULL;
        int r = start_source_helper(source, &error);

        if (r >= 0)
                return;
        set_source_error(source, error_message(&error, r));
        schedule_source(source, source->config.interval_usec);
}

/* A request that failed because of the time is repeated immediately if the clock was set in the
 * meantime. The removal of a USB stick is noticed only when it is inserted again. */
static void schedule_next_question(ManifestSource *source) {
        bool is_due = source->error && source->is_clock_set;

        source->is_clock_set = false;
        if (source->is_absent)
                return;
        if (!is_due)
                schedule_source(source, source->config.interval_usec);
        else
                (void) arm_source_timer(source, 0);
}

/* ---- a stick ---- */

static void on_stick_changed(void *userdata) {
        ManifestSource *source = userdata;

        source->is_absent = false;
        if (!source->child && !source->is_preparing)
                (void) arm_source_timer(source, 0);
}

/* The USB stick may have been mounted before it was watched, so it is read once more. A watch that
 * exists is kept: a new one would lose an event that is pending. */
static void notice_absence(ManifestSource *source, bool is_absent) {
        if (!source->stick_watch || (is_absent && source->is_absent))
                return;
        source->is_absent =
                stick_watch_set_absent(source->stick_watch, is_absent) >= 0 && is_absent;
        if (source->is_absent)
                (void) arm_source_timer(source, 0);
}

static void on_source_asked(const ChildResult *result, void *userdata) {
        ManifestSource *source = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r = child_explain(result, "mainstay-image", &error);

        source->child = NULL;
        notice_absence(source, result->code == CLD_EXITED && result->status == EX_NOINPUT);
        if (r < 0)
                set_source_error(source, error_message(&error, r));
        else
                take_source_answer(source, result);
        if (!source->is_preparing)
                schedule_next_question(source);
        memory_trim_timer_restart();
}

static int on_source_timer(sd_event_source *timer, uint64_t usec, void *userdata) {
        ManifestSource *source = userdata;
        uint64_t wait =
                source->is_on_trial ? source->config.interval_usec : wait_for_window(source);

        if (wait > 0)
                schedule_source(source, wait);
        else
                ask_source(source);
        return 0;
}

/* A certificate or an index that failed because of the time may be valid now, and the time window
 * has moved. */
static void on_source_clock_set(void *userdata) {
        ManifestSource *source = userdata;

        source->is_clock_set = source->child != NULL;
        if (!source->child && !source->is_preparing && (source->error || source->config.window))
                (void) arm_source_timer(source, 0);
}

uint64_t manifest_source_first_wait(uint64_t interval_usec, bool has_manifests, uint64_t boottime,
                                    uint32_t random) {
        uint64_t spread = MIN(interval_usec, FIRST_WAIT_MAX_USEC);

        return has_manifests && boottime < spread ? random_part(spread, random) : 0;
}

int manifest_source_start(ManifestSource *source) {
        return arm_source_timer(source,
                                manifest_source_first_wait(source->config.interval_usec,
                                                           source->in_use.is_there,
                                                           now_boottime_usec(), back_off_random()));
}

/* ---- the trial of an index ---- */

uint64_t manifest_source_deadline_usec(const ManifestSource *source) {
        return source->in_use.deadline_usec;
}

bool manifest_source_is_on_trial(const ManifestSource *source, uint64_t *ret_since) {
        *ret_since = source->in_use.fetched;
        return source->is_on_trial;
}

int manifest_source_open_previous(const ManifestSource *source) {
        return open_source_manifests(source, "next/manifests");
}

void manifest_source_end_trial(ManifestSource *source) {
        cleanup_close int fd = open_source_directory(source);
        cleanup_free char *current = path_join(source->config.name, "current");
        int r = fd < 0 ? fd : source_mark_proven(fd);

        source->is_on_trial = false;
        if (r < 0)
                (void) log_error_errno(r, "Cannot record in %s that the index was ready in time",
                                       source->directory);
        else if (current)
                fsync_queue_add(source->sync, current);
}

/* '*ret_is_usable' is false if the previous index must not be used, or is gone. */
static int return_to_previous(ManifestSource *source, const char *reason, bool *ret_is_usable,
                              Error *reterr) {
        cleanup_close int fd = manifest_source_open_previous(source);
        cleanup_close int dir_fd = open_source_directory(source);
        int r = fd < 0 ? fd : source->config.check(fd, reterr, source->config.userdata);

        if (r < 0)
                return r;
        *ret_is_usable = true;
        r = dir_fd < 0 ? dir_fd : source_rollback_store(dir_fd, source->in_use.sha256, reason);
        if (r < 0)
                return r;
        r = exchange_next_and_current(source);
        if (r < 0)
                return r;
        DIE_AT("source.rolled-back");
        replace_source_text(&source->refusal, reason);
        source->config.on_accepted(fd, source->config.userdata);
        return 0;
}

int manifest_source_roll_back(ManifestSource *source, const char *reason) {
        cleanup_error Error error = ERROR_NULL;
        bool is_usable = false;
        int r = return_to_previous(source, reason, &is_usable, &error);

        source->is_on_trial = r < 0 && is_usable;
        if (r >= 0) {
                log_warning("Source '%s': %s", source->config.name, reason);
                set_source_error(source, source->refusal);
                return 0;
        }
        r = error_prefixf(&error, r, "cannot return to the previous index");
        set_source_error(source, error_message(&error, r));
        return is_usable ? r : 0;
}

/* An agent that died has recorded a rollback, but not performed it. */
static int finish_rollback(ManifestSource *source) {
        int r = 0;

        read_what_is_in_use(source);
        if (source_rollback_is_due(&source->in_use, &source->other, &source->rollback))
                r = exchange_next_and_current(source);
        if (r >= 0 && source->rollback.sha256 &&
            streq_ptr(source->rollback.sha256, source->other.sha256))
                replace_source_text(&source->refusal, source->rollback.reason);
        return r;
}

/* ---- construction ---- */

static int add_source_timer(ManifestSource *source) {
        int r = event_add_disabled_timer(source->config.event, &source->timer, CLOCK_BOOTTIME, 0,
                                         on_source_timer, source);

        if (r < 0)
                return r;
        return sd_event_source_set_description(source->timer, source->config.name);
}

int manifest_source_new(const ManifestSourceConfig *config, ManifestSource **ret) {
        static const char *const names[] = { SOURCE_ROLLBACK_NAME, SOURCE_PROVEN_NAME, NULL };
        cleanup_with(manifest_source_freep) ManifestSource *source = calloc(1, sizeof(*source));
        cleanup_free char *base = path_join(config->state_dir, "sources");
        int r;

        if (!source || !base)
                return -ENOMEM;
        source->config = *config;
        source->directory = path_join(base, config->name);
        if (!source->directory)
                return -ENOMEM;
        r = mkdir_parents_at(AT_FDCWD, source->directory, 0700);
        if (r < 0)
                return r;
        r = fsync_queue_new(config->event, base, names, &source->sync);
        if (r < 0)
                return r;
        r = add_source_timer(source);
        if (r < 0)
                return r;
        r = clock_watch_new(config->event, on_source_clock_set, source, &source->clock_watch);
        if (r < 0)
                return r;
        if (config->stick_path)
                r = stick_watch_new(config->event, config->stick_path, on_stick_changed, source,
                                    &source->stick_watch);
        if (r < 0)
                return r;
        r = finish_rollback(source);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(source);
        return 0;
}

ManifestSource *manifest_source_free(ManifestSource *source) {
        if (!source)
                return NULL;
        clock_watch_free(source->clock_watch);
        stick_watch_free(source->stick_watch);
        child_free(source->child);
        sd_event_source_disable_unref(source->timer);
        fsync_queue_free(source->sync);
        source_in_use_done(&source->in_use);
        source_in_use_done(&source->other);
        source_rollback_done(&source->rollback);
        free(source->refusal);
        free(source->progress);
        free(source->error);
        free(source->directory);
        free(source);
        return NULL;
}
