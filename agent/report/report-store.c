/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/report-store.h"

#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/durable-write.h"
#include "common/event-source.h"
#include "common/file.h"
#include "common/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum {
        OBJECT_BYTES_MAX = 1024 * 1024,
        OBJECTS_MAX = DURABLE_WRITE_FILES_MAX - 1, /* one file contains the count */
        FILE_MODE = 0600
};

#define SAVE_USEC      (10 * USEC_PER_SEC)
#define DROPPED_FILE   ".dropped"
#define DAMAGED_SUFFIX ".damaged"

struct ReportStore {
        sd_event *event;
        char *directory;
        ReportQueue *queue;
        sd_event_source *timer;
        ForkedTask *child;
        uint64_t dropped_on_disk, dropped_being_written;
        bool is_more; /* more lines are pending than a child writes */
        bool has_failed;
};

/* The work of one child. */
typedef struct ReportBatch {
        DurableFile files[DURABLE_WRITE_FILES_MAX];
        char *texts[DURABLE_WRITE_FILES_MAX];
        size_t n;
} ReportBatch;

/* ---- load ---- */

static int load_stored_object(int dir_fd, ReportQueue *queue, const char *name) {
        cleanup_free char *text = NULL;
        int r = checksummed_read_at(dir_fd, name, OBJECT_BYTES_MAX, &text);

        if (r >= 0)
                r = report_queue_restore(queue, name, text);
        if (r >= 0 || r == -ENOMEM)
                return r;
        if (!is_file_damage(r)) {
                log_warning("Cannot read report/%s: %s; leaving it there", name, strerror(-r));
                return 0;
        }
        log_warning("Setting aside damaged file report/%s: %s", name, strerror(-r));
        checksummed_set_aside_at(dir_fd, name);
        return 0;
}

static void load_dropped_count(ReportStore *store, int dir_fd) {
        cleanup_free char *text = NULL;

        if (checksummed_read_at(dir_fd, DROPPED_FILE, 256, &text) >= 0)
                store->dropped_on_disk = strtoull(text, NULL, 10);
        report_queue_set_dropped(store->queue, store->dropped_on_disk);
}

/* Files that a killed child has not renamed have names that start with '.'. */
static bool is_stored_object(const char *name) {
        size_t length = strlen(name), suffix = strlen(DAMAGED_SUFFIX);

        return report_name_is_valid(name) &&
               (length < suffix || !streq(name + length - suffix, DAMAGED_SUFFIX));
}

static int load_stored_objects(DIR *directory, ReportQueue *queue) {
        const struct dirent *entry;
        int r;

        while ((r = read_directory_entry(directory, &entry)) > 0) {
                r = is_stored_object(entry->d_name)
                            ? load_stored_object(dirfd(directory), queue, entry->d_name)
                            : 0;
                if (r < 0)
                        return r;
        }
        if (r < 0)
                log_warning("Cannot list all of report/: %s; leaving the rest there", strerror(-r));
        return 0;
}

static int load_report_store(ReportStore *store) {
        int fd = open_directory_at(AT_FDCWD, store->directory, 0700);
        cleanup_closedir DIR *directory = fd < 0 ? NULL : fdopendir(fd);

        if (fd < 0)
                return fd;
        if (!directory) {
                close_fd(fd);
                return -ENOMEM;
        }
        load_dropped_count(store, fd);
        return load_stored_objects(directory, store->queue);
}

/* ---- save ---- */

static bool has_unsaved(const ReportStore *store) {
        return report_queue_has_unsaved(store->queue) ||
               report_queue_dropped(store->queue) != store->dropped_on_disk;
}

static void report_batch_done(ReportBatch *batch) {
        for (size_t i = 0; i < batch->n; i++)
                free(batch->texts[i]);
}

/* If 'text' is NULL, the file is removed. */
static int add_to_batch(ReportBatch *batch, const char *name, const char *text) {
        char *whole = NULL;
        size_t length;

        if (text) {
                whole = checksummed_format(text, &length);
                if (!whole)
                        return -ENOMEM;
        }
        batch->files[batch->n] = (DurableFile){ .name = name, .text = whole, .mode = FILE_MODE };
        batch->texts[batch->n++] = whole;
        return 0;
}

static int add_dropped_count(ReportStore *store, ReportBatch *batch) {
        uint64_t dropped = report_queue_dropped(store->queue);
        char text[32];

        store->dropped_being_written = dropped;
        if (dropped == store->dropped_on_disk)
                return 0;
        (void) snprintf(text, sizeof(text), "%" PRIu64 "\n", dropped);
        return add_to_batch(batch, DROPPED_FILE, text);
}

static int collect_batch(ReportStore *store, ReportBatch *batch) {
        int r = 1;

        while (r > 0 && batch->n < OBJECTS_MAX) {
                cleanup_free char *lines = NULL;
                const char *name;

                r = report_queue_next_unsaved(store->queue, &name, &lines);
                if (r > 0 && add_to_batch(batch, name, lines) < 0)
                        r = -ENOMEM;
        }
        store->is_more = r > 0 && report_queue_has_unsaved(store->queue);
        return r < 0 ? r : add_dropped_count(store, batch);
}

static void end_report_write(ReportStore *store, int r) {
        if (r >= 0) {
                report_queue_saved(store->queue);
                store->dropped_on_disk = store->dropped_being_written;
        } else
                report_queue_not_saved(store->queue);
        if (r < 0 && !store->has_failed)
                (void) log_error_errno(r, "Cannot write the report queue to %s", store->directory);
        store->has_failed = r < 0;
}

static void on_report_written(int r, void *userdata) {
        ReportStore *store = userdata;

        store->child = NULL;
        end_report_write(store, r);
        if (r >= 0 && store->is_more)
                report_store_save(store);
        else
                report_store_wake(store);
}

void report_store_save(ReportStore *store) {
        cleanup_with(report_batch_done) ReportBatch batch = { 0 };
        int r;

        if (store->child || !has_unsaved(store))
                return;
        r = collect_batch(store, &batch);
        if (r >= 0)
                r = durable_write_start(store->event, store->directory, batch.files, batch.n,
                                        on_report_written, store, &store->child);
        if (r >= 0)
                return;
        end_report_write(store, r);
        report_store_wake(store);
}

static int write_last_batch(ReportStore *store) {
        cleanup_with(report_batch_done) ReportBatch batch = { 0 };
        int r = collect_batch(store, &batch);

        if (r >= 0)
                r = durable_write_now(store->directory, batch.files, batch.n);
        end_report_write(store, r);
        return r;
}

/* ---- the timer ---- */

static int on_report_save_timer(sd_event_source *timer, uint64_t usec, void *userdata) {
        report_store_save(userdata);
        return 0;
}

void report_store_wake(ReportStore *store) {
        int enabled = SD_EVENT_OFF, r = sd_event_source_get_enabled(store->timer, &enabled);

        if (enabled != SD_EVENT_OFF || store->child || !has_unsaved(store))
                return;
        if (r >= 0)
                r = event_timer_arm(store->timer, SAVE_USEC);
        if (r < 0)
                (void) log_error_errno(r, "Cannot set the report timer");
}

/* ---- start and end ---- */

int report_store_new(sd_event *event, const char *directory, ReportQueue *queue,
                     ReportStore **ret) {
        cleanup_with(report_store_freep) ReportStore *store = calloc(1, sizeof(*store));
        int r;

        if (!store)
                return -ENOMEM;
        store->event = event;
        store->queue = queue;
        store->directory = strdup(directory);
        if (!store->directory)
                return -ENOMEM;
        r = load_report_store(store);
        if (r < 0)
                return r;
        r = sd_event_add_time_relative(event, &store->timer, CLOCK_BOOTTIME, 0, USEC_PER_SEC,
                                       on_report_save_timer, store);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(store->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(store);
        return 0;
}

ReportStore *report_store_free(ReportStore *store) {
        if (!store)
                return NULL;
        if (store->child)
                end_report_write(store, forked_task_wait(store->child));
        while (store->timer && has_unsaved(store))
                if (write_last_batch(store) < 0)
                        break;
        sd_event_source_disable_unref(store->timer);
        free(store->directory);
        free(store);
        return NULL;
}
