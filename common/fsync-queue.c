/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fsync-queue.h"

#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/event-source.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/forked-task.h"
#include "common/log.h"
#include "common/strv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

struct FsyncQueue {
        sd_event *event;
        char *base;
        const char *const *names;
        const char *kept; /* of the names, or NULL */
        char **marked;
        char **removed;              /* when the child has ended */
        sd_event_source *due_source; /* at the end of the turn */
        ForkedTask *child;
        int last_error; /* the last -errno that was logged */
};

/* ---- the child: must not call functions whose locks a thread could hold ---- */

/* A missing file does not need a sync. */
static int fsync_path_at(int dir_fd, const char *name, int flags) {
        int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags);
        int r;

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        r = fsync(fd) < 0 ? -errno : 0;
        close(fd);
        return r;
}

/* The file is synced under its second name, so that a file that a rename puts in its place in the
 * meantime is not confused with it. */
static int keep_synced_at(int dir_fd, const char *name) {
        char synced[NAME_MAX + 1], linked[NAME_MAX + 1];
        int r;

        (void) snprintf(synced, sizeof(synced), "%s" CHECKSUMMED_SYNCED_SUFFIX, name);
        (void) snprintf(linked, sizeof(linked), "%s" CHECKSUMMED_SYNCED_SUFFIX ".new", name);
        r = unlink_if_present_at(dir_fd, linked);
        if (r < 0)
                return r;
        if (linkat(dir_fd, name, dir_fd, linked, 0) < 0)
                return errno == ENOENT ? unlink_if_present_at(dir_fd, synced) : -errno;
        FAIL_AT("sync.linked");
        r = fsync_path_at(dir_fd, linked, 0);
        if (r >= 0 && renameat(dir_fd, linked, dir_fd, synced) < 0)
                r = -errno;
        /* rename(2) changes nothing if both names refer to the same file. */
        (void) unlinkat(dir_fd, linked, 0);
        return r;
}

static int fsync_name_at(const FsyncQueue *sync, int dir_fd, const char *name) {
        return streq_ptr(name, sync->kept) ? keep_synced_at(dir_fd, name)
                                           : fsync_path_at(dir_fd, name, 0);
}

static int fsync_marked_directory(const FsyncQueue *sync, int base_fd, const char *directory) {
        cleanup_close int fd =
                openat(base_fd, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        int r;

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        /* The child of an agent that was killed may still be running. */
        if (sync->kept && flock(fd, LOCK_EX) < 0)
                return -errno;
        for (const char *const *name = sync->names; *name; name++) {
                r = fsync_name_at(sync, fd, *name);
                if (r == -ENOENT) /* the directory is being removed */
                        return 0;
                if (r < 0)
                        return r;
        }
        return fsync_path_at(fd, ".", O_DIRECTORY);
}

static int fsync_queue_run(int fd, const void *work) {
        const FsyncQueue *sync = work;
        cleanup_close int base_fd = open(sync->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = 0;

        if (base_fd < 0)
                return -errno;
        strv_foreach(directory, sync->marked) {
                int one = fsync_marked_directory(sync, base_fd, *directory);

                r = r < 0 ? r : one;
        }
        return r >= 0 && fsync(base_fd) < 0 ? -errno : r;
}

/* ---- the parent ---- */

static void arm_fsync_queue(FsyncQueue *sync) {
        if (sync->marked && !sync->child)
                (void) sd_event_source_set_enabled(sync->due_source, SD_EVENT_ONESHOT);
}

static void log_fsync_result(FsyncQueue *sync, int r) {
        if (r < 0 && r != sync->last_error)
                log_error("Cannot sync files below %s: %s; they may not survive a power cut",
                          sync->base, strerror(-r));
        sync->last_error = r;
}

static void remove_synced_directory(const FsyncQueue *sync, const char *directory) {
        cleanup_free char *path = path_join(sync->base, directory);
        int r = path ? remove_tree_at(AT_FDCWD, path) : -ENOMEM;

        if (r < 0)
                (void) log_error_errno(r, "Cannot remove %s/%s", sync->base, directory);
}

static void unmark_directory(FsyncQueue *sync, const char *directory) {
        size_t n = 0;

        strv_foreach(marked, sync->marked)
                if (streq(*marked, directory))
                        free(*marked);
                else
                        sync->marked[n++] = *marked;
        if (sync->marked)
                sync->marked[n] = NULL;
}

void fsync_queue_remove(FsyncQueue *sync, const char *directory) {
        unmark_directory(sync, directory);
        if (!sync->child || strv_append(&sync->removed, directory) < 0)
                remove_synced_directory(sync, directory);
}

static void remove_directories_after_child(FsyncQueue *sync) {
        strv_foreach(directory, sync->removed)
                if (!strv_contains(sync->marked, *directory)) /* it was not written again */
                        remove_synced_directory(sync, *directory);
        sync->removed = strv_free(sync->removed);
}

static void on_fsync_child_done(int r, void *userdata) {
        FsyncQueue *sync = userdata;

        sync->child = NULL;
        log_fsync_result(sync, r);
        remove_directories_after_child(sync);
        arm_fsync_queue(sync);
}

static int on_fsync_queue_due(sd_event_source *source, void *userdata) {
        FsyncQueue *sync = userdata;
        int r = forked_task_start(sync->event, fsync_queue_run, -EBADF, sync, on_fsync_child_done,
                                  sync, &sync->child);

        sync->marked = strv_free(sync->marked);
        if (r < 0)
                log_fsync_result(sync, r);
        return 0;
}

void fsync_queue_add(FsyncQueue *sync, const char *directory) {
        if (!sync || strv_contains(sync->marked, directory))
                return;
        if (strv_append(&sync->marked, directory) < 0)
                log_fsync_result(sync, -ENOMEM);
        arm_fsync_queue(sync);
}

int fsync_queue_new(sd_event *event, const char *base, const char *const *names, FsyncQueue **ret) {
        cleanup_with(fsync_queue_freep) FsyncQueue *sync = calloc(1, sizeof(*sync));
        int r;

        if (!sync)
                return -ENOMEM;
        *sync = (FsyncQueue){ .event = event, .names = names, .base = strdup(base) };
        if (!sync->base)
                return -ENOMEM;
        r = event_add_disabled_defer(event, &sync->due_source, SD_EVENT_PRIORITY_IDLE,
                                     on_fsync_queue_due, sync);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(sync);
        return 0;
}

void fsync_queue_keep_synced(FsyncQueue *sync, const char *name) {
        sync->kept = name;
}

int fsync_queue_last_error(const FsyncQueue *sync) {
        return sync->last_error;
}

FsyncQueue *fsync_queue_free(FsyncQueue *sync) {
        if (!sync)
                return NULL;
        forked_task_free(sync->child);
        sd_event_source_disable_unref(sync->due_source);
        strv_free(sync->marked);
        strv_free(sync->removed);
        free(sync->base);
        free(sync);
        return NULL;
}
