/* SPDX-License-Identifier: Apache-2.0 */

/* The helper leaves what is new in "next", verified and synced. If it can be used, "next" and
 * "current" are exchanged at once: after a crash or a power cut, "current" is the old or the new
 * content, and whole. The timer runs only while no helper does, and wakes the agent for nothing
 * else. */

#include "agent/source/manifest-source.h"

#include "agent/source/source-answer.h"
#include "common/back-off.h"
#include "common/child.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/fsync-queue.h"
#include "common/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <sysexits.h>

enum {
        ANSWER_BYTES_MAX = 16 * 1024,
        JITTER_PERCENT = 10
};

#define HELPER_TIMEOUT_USEC (15 * (60 * USEC_PER_SEC))

struct ManifestSource {
        ManifestSourceConfig config;
        char *directory;
        FsyncQueue *sync;
        sd_event_source *timer;
        Child *child;
        char *error;        /* why it has failed; NULL: it has not */
        char *refusal;      /* why "next" could not be used; NULL: nothing was refused */
        uint64_t since;     /* realtime; of the last transition */
        uint64_t succeeded; /* realtime */
};

/* ---- status ---- */

NodeSourceStatus manifest_source_status(const ManifestSource *source) {
        return (NodeSourceStatus){ .name = source->config.name,
                                   .message = source->error,
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

/* NULL: it has not failed. */
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

static int exchange_next_and_current(const ManifestSource *source) {
        cleanup_close int fd = open_source_directory(source);

        if (fd < 0)
                return fd;
        if (renameat2(fd, "next", fd, "current", RENAME_EXCHANGE) < 0 &&
            (errno != ENOENT || renameat(fd, "next", fd, "current") < 0))
                return -errno;
        fsync_queue_add(source->sync, source->config.name);
        return 0;
}

static int accept_new_manifests(const ManifestSource *source, Error *reterr) {
        cleanup_close int fd = open_source_manifests(source, "next/manifests");
        int r = fd < 0 ? error_prefixf(reterr, fd, "%s/next", source->directory)
                       : source->config.check(fd, reterr, source->config.userdata);

        if (r < 0)
                return r;
        r = exchange_next_and_current(source);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", source->directory);
        log_info("%s has new manifests, which are in use from now on", source->config.name);
        source->config.on_accepted(fd, source->config.userdata);
        return 0;
}

static void take_source_answer(ManifestSource *source, const ChildResult *result) {
        cleanup_error Error error = ERROR_NULL;
        SourceAnswer answer = { 0 };
        int r = source_answer_parse(result->output, result->output_length, &answer, &error);

        if (r >= 0 && answer.is_new) {
                r = accept_new_manifests(source, &error);
                replace_source_text(&source->refusal, r < 0 ? error_message(&error, r) : NULL);
        }
        set_source_error(source, r < 0 ? error_message(&error, r) : source->refusal);
}

static void on_source_asked(const ChildResult *result, void *userdata);

/* ---- when it is asked ---- */

static int arm_source_timer(ManifestSource *source, uint64_t usec) {
        int r = sd_event_source_set_time_relative(source->timer, usec);

        return r < 0 ? r : sd_event_source_set_enabled(source->timer, SD_EVENT_ONESHOT);
}

static void schedule_source(ManifestSource *source) {
        uint64_t usec = back_off_add_jitter(source->config.interval_usec, JITTER_PERCENT,
                                            back_off_random());
        int r = arm_source_timer(source, usec);

        if (r < 0)
                (void) log_error_errno(r, "Cannot set the timer of %s", source->config.name);
}

static int start_source_helper(ManifestSource *source, Error *reterr) {
        cleanup_close int settings =
                source->config.open_settings(source->refusal != NULL, source->config.userdata);
        cleanup_free char *option = NULL, *helper = strdup(source->config.helper_path);

        if (settings < 0)
                return settings;
        if (!helper || asprintf(&option, "--store=%s", source->directory) < 0) {
                option = NULL;
                return -ENOMEM;
        }
        return child_spawn(
                source->config.event,
                &(ChildSpec){ .argv = (char *[]){ helper, (char[]){ "source" }, option, NULL },
                              .output_max = ANSWER_BYTES_MAX,
                              .timeout_usec = HELPER_TIMEOUT_USEC,
                              .input_fd = settings },
                on_source_asked, source, &source->child, reterr);
}

static void ask_source(ManifestSource *source) {
        cleanup_error Error error = ERROR_NULL;
        int r = start_source_helper(source, &error);

        if (r >= 0)
                return;
        set_source_error(source, error_message(&error, r));
        schedule_source(source);
}

static void on_source_asked(const ChildResult *result, void *userdata) {
        ManifestSource *source = userdata;
        cleanup_error Error error = ERROR_NULL;
        int r = child_explain(result, "mainstay-image", &error);

        source->child = NULL;
        if (r < 0)
                set_source_error(source, error_message(&error, r));
        else
                take_source_answer(source, result);
        schedule_source(source);
}

static int on_source_timer(sd_event_source *timer, uint64_t usec, void *userdata) {
        ask_source(userdata);
        return 0;
}

int manifest_source_start(ManifestSource *source) {
        return arm_source_timer(source, 0);
}

/* ---- construction ---- */

static int add_source_timer(ManifestSource *source) {
        uint64_t accuracy = source->config.interval_usec / JITTER_PERCENT;
        int r = sd_event_add_time(source->config.event, &source->timer, CLOCK_BOOTTIME, 0, accuracy,
                                  on_source_timer, source);

        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(source->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        return sd_event_source_set_description(source->timer, source->config.name);
}

int manifest_source_new(const ManifestSourceConfig *config, ManifestSource **ret) {
        static const char *const no_files[] = { NULL };
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
        r = fsync_queue_new(config->event, base, no_files, &source->sync);
        if (r < 0)
                return r;
        r = add_source_timer(source);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(source);
        return 0;
}

ManifestSource *manifest_source_free(ManifestSource *source) {
        if (!source)
                return NULL;
        child_free(source->child);
        sd_event_source_disable_unref(source->timer);
        fsync_queue_free(source->sync);
        free(source->refusal);
        free(source->error);
        free(source->directory);
        free(source);
        return NULL;
}
