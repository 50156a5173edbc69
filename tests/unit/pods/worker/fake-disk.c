/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces common/fsync-queue.c and common/forked-task.c: nothing is synced, and tasks run in this
 * process. */

#include "common/cleanup.h"
#include "common/file.h"
#include "common/forked-task.h"
#include "common/fsync-queue.h"
#include "tests/unit/pods/worker/fakes.h"

#include <fcntl.h>
#include <unistd.h>

bool fake_disk_hangs;

int fsync_queue_new(sd_event *event, const char *base, const char *const *names, FsyncQueue **ret) {
        *ret = calloc(1, 1);
        return *ret ? 0 : -ENOMEM;
}

void fsync_queue_keep_synced(FsyncQueue *sync, const char *name) {
}

FsyncQueue *fsync_queue_free(FsyncQueue *sync) {
        free(sync);
        return NULL;
}

void fsync_queue_add(FsyncQueue *sync, const char *directory) {
}

struct ForkedTask {
        sd_event_source *end;
        forked_task_done_t done;
        void *userdata;
        int result;
};

static int on_fake_task_end(sd_event_source *source, void *userdata) {
        ForkedTask *task = userdata;
        forked_task_done_t done = task->done;
        void *done_userdata = task->userdata;
        int result = task->result;

        forked_task_free(task);
        done(result, done_userdata);
        return 0;
}

int forked_task_start_piped(sd_event *event, forked_task_run_t run, const void *work,
                            forked_task_done_t done, void *userdata, ForkedTask **ret) {
        ForkedTask *task = calloc(1, sizeof(*task));
        int fds[2];

        REQUIRE(task && pipe2(fds, O_CLOEXEC | O_NONBLOCK) >= 0);
        task->done = done;
        task->userdata = userdata;
        task->result = run(fds[1], work);
        close_fd(fds[1]);
        if (!fake_disk_hangs)
                REQUIRE(sd_event_add_defer(event, &task->end, on_fake_task_end, task) >= 0);
        *ret = task;
        return fds[0];
}

void forked_task_signal(const ForkedTask *forked, int number) {
}

ForkedTask *forked_task_free(ForkedTask *forked) {
        if (!forked)
                return NULL;
        sd_event_source_disable_unref(forked->end);
        free(forked);
        return NULL;
}
