/* SPDX-License-Identifier: Apache-2.0 */
#include "common/dir-sync.h"

#include "common/cleanup.h"
#include "common/forked.h"
#include "common/log.h"
#include "common/strv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct DirSync {
        sd_event *event;
        char *base;
        const char *const *names;
        char **marked;
        sd_event_source *due; /* at the end of the turn */
        Forked *child;
        int trouble; /* -errno, that was said */
};

/* ---- the child, in which nothing may be called that another thread could hold ---- */

/* What is not there needs nothing. */
static int sync_one(int dir_fd, const char *name, int flags) {
        int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags);
        int r;

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        r = fsync(fd) < 0 ? -errno : 0;
        close(fd);
        return r;
}

static int sync_directory(const DirSync *sync, int base_fd, const char *directory) {
        int fd = openat(base_fd, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        int r = 0;

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        for (const char *const *name = sync->names; *name && r >= 0; name++)
                r = sync_one(fd, *name, 0);
        if (r >= 0)
                r = sync_one(fd, ".", O_DIRECTORY);
        close(fd);
        return r;
}

static int run(int fd, const void *work) {
        const DirSync *sync = work;
        cleanup_close int base_fd = open(sync->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = 0;

        if (base_fd < 0)
                return -errno;
        strv_foreach(directory, sync->marked) {
                int one = sync_directory(sync, base_fd, *directory);

                r = r < 0 ? r : one;
        }
        return r >= 0 && fsync(base_fd) < 0 ? -errno : r;
}

/* ---- the parent ---- */

static void arm(DirSync *sync) {
        if (sync->marked && !sync->child)
                (void) sd_event_source_set_enabled(sync->due, SD_EVENT_ONESHOT);
}

static void say(DirSync *sync, int r) {
        if (r < 0 && r != sync->trouble)
                (void) log_error_errno(r, "What was written below %s may not survive a power cut",
                                       sync->base);
        sync->trouble = r;
}

static void on_done(int r, void *userdata) {
        DirSync *sync = userdata;

        sync->child = NULL;
        say(sync, r);
        arm(sync);
}

static int on_due(sd_event_source *source, void *userdata) {
        DirSync *sync = userdata;
        int r = forked_start(sync->event, run, -EBADF, sync, on_done, sync, &sync->child);

        sync->marked = strv_free(sync->marked);
        if (r < 0)
                say(sync, r);
        return 0;
}

void dir_sync_mark(DirSync *sync, const char *directory) {
        if (!sync || strv_contains(sync->marked, directory))
                return;
        if (strv_append(&sync->marked, directory) < 0)
                say(sync, -ENOMEM);
        arm(sync);
}

int dir_sync_new(sd_event *event, const char *base, const char *const *names, DirSync **ret) {
        cleanup_with(dir_sync_freep) DirSync *sync = calloc(1, sizeof(*sync));
        int r;

        if (!sync)
                return -ENOMEM;
        *sync = (DirSync){ .event = event, .names = names, .base = strdup(base) };
        if (!sync->base)
                return -ENOMEM;
        r = sd_event_add_defer(event, &sync->due, on_due, sync);
        if (r >= 0)
                r = sd_event_source_set_priority(sync->due, SD_EVENT_PRIORITY_IDLE);
        if (r >= 0)
                r = sd_event_source_set_enabled(sync->due, SD_EVENT_OFF);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(sync);
        return 0;
}

DirSync *dir_sync_free(DirSync *sync) {
        if (!sync)
                return NULL;
        forked_free(sync->child);
        sd_event_source_disable_unref(sync->due);
        strv_free(sync->marked);
        free(sync->base);
        free(sync);
        return NULL;
}
