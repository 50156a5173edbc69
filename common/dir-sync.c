/* SPDX-License-Identifier: Apache-2.0 */
#include "common/dir-sync.h"

#include "common/child.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/strv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct DirSync {
        sd_event *event;
        char *base;
        const char *const *names;
        char **marked;
        sd_event_source *due; /* at the end of the turn */
        sd_event_source *end; /* of the child */
        int trouble;          /* -errno, that was said */
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

static void run(const DirSync *sync) {
        int fd, r = 0;

        (void) close_range(3, ~0U, 0); /* what the parent closes must be closed, be this slow */
        fd = open(sync->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                _exit(errno & 0xff);
        strv_foreach(directory, sync->marked) {
                int one = sync_directory(sync, fd, *directory);

                r = r < 0 ? r : one;
        }
        if (r >= 0 && fsync(fd) < 0)
                r = -errno;
        _exit(-r & 0xff);
}

/* ---- the parent ---- */

static void arm(DirSync *sync) {
        if (sync->marked && !sync->end)
                (void) sd_event_source_set_enabled(sync->due, SD_EVENT_ONESHOT);
}

static void say(DirSync *sync, int r) {
        if (r < 0 && r != sync->trouble)
                (void) log_error_errno(r, "What was written below %s may not survive a power cut",
                                       sync->base);
        sync->trouble = r;
}

static int on_end(sd_event_source *source, const siginfo_t *si, void *userdata) {
        DirSync *sync = userdata;

        if (!sync) /* forgotten: the loop's own, and nobody's from here on */
                return sd_event_source_set_floating(source, false);
        sync->end = sd_event_source_disable_unref(sync->end);
        say(sync, si->si_code == CLD_EXITED ? -si->si_status : -EIO);
        arm(sync);
        return 0;
}

static int start(DirSync *sync) {
        pid_t pid = fork();
        int r;

        if (pid < 0)
                return -errno;
        if (pid == 0)
                run(sync);
        r = sd_event_add_child(sync->event, &sync->end, pid, WEXITED, on_end, sync);
        if (r >= 0)
                r = child_watch_for_good(sync->end);
        if (r < 0) {
                sync->end = sd_event_source_disable_unref(sync->end);
                (void) waitpid(pid, NULL, 0);
        }
        return r;
}

static int on_due(sd_event_source *source, void *userdata) {
        DirSync *sync = userdata;
        int r = start(sync);

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
        if (sync->end) {
                (void) sd_event_source_set_userdata(sync->end, NULL);
                (void) sd_event_source_set_floating(sync->end, true);
                sd_event_source_unref(sync->end);
        }
        sd_event_source_disable_unref(sync->due);
        strv_free(sync->marked);
        free(sync->base);
        free(sync);
        return NULL;
}
