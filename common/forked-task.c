/* SPDX-License-Identifier: Apache-2.0 */
#include "common/forked-task.h"

#include "common/child.h"
#include "common/cleanup.h"
#include "common/pipe.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct ForkedTask {
        sd_event_source *end;
        forked_task_done_t done;
        void *userdata;
};

static void close_other_descriptors(int fd) {
        (void) close_range((unsigned) MAX(fd, 2) + 1, ~0U, 0);
        if (fd > 3)
                (void) close_range(3, (unsigned) fd - 1, 0);
}

static int on_forked_task_exit(sd_event_source *source, const siginfo_t *si, void *userdata) {
        ForkedTask *forked = userdata;
        int r = si->si_code == CLD_EXITED ? -si->si_status : -EIO;

        if (!forked) /* dropped: the loop frees it */
                return sd_event_source_set_floating(source, false);
        forked->end = sd_event_source_disable_unref(forked->end);
        forked->done(r, forked->userdata);
        free(forked);
        return 0;
}

static int watch_forked_task(sd_event *event, pid_t pid, ForkedTask *forked) {
        int r = sd_event_add_child(event, &forked->end, pid, WEXITED, on_forked_task_exit, forked);

        if (r >= 0)
                r = child_source_rearm(forked->end);
        if (r < 0) {
                forked->end = sd_event_source_disable_unref(forked->end);
                (void) kill(pid, SIGKILL); /* the loop does not wait for its result */
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        return r;
}

int forked_task_start(sd_event *event, forked_task_run_t run, int fd, const void *work,
                      forked_task_done_t done, void *userdata, ForkedTask **ret) {
        cleanup_free ForkedTask *forked = calloc(1, sizeof(*forked));
        pid_t pid;
        int r;

        if (!forked)
                return -ENOMEM;
        *forked = (ForkedTask){ .done = done, .userdata = userdata };
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                close_other_descriptors(fd);
                _exit(-run(fd, work) & 0xff); /* no errno is larger */
        }
        r = watch_forked_task(event, pid, forked);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(forked);
        return 0;
}

int forked_task_start_piped(sd_event *event, forked_task_run_t run, const void *work,
                            forked_task_done_t done, void *userdata, ForkedTask **ret) {
        int fds[2], r;

        r = pipe_open(PIPE_READ_END, fds);
        if (r < 0)
                return r;
        r = forked_task_start(event, run, fds[1], work, done, userdata, ret);
        close_fd(fds[1]);
        if (r >= 0)
                return fds[0];
        close_fd(fds[0]);
        return r;
}

void forked_task_signal(const ForkedTask *forked, int number) {
        (void) sd_event_source_send_child_signal(forked->end, number, NULL, 0);
}

int forked_task_wait(ForkedTask *forked) {
        siginfo_t si = { 0 };
        pid_t pid = 0;
        int r = sd_event_source_get_child_pid(forked->end, &pid);

        forked->end = sd_event_source_disable_unref(forked->end);
        free(forked);
        if (r < 0)
                return r;
        do
                r = waitid(P_PID, (id_t) pid, &si, WEXITED) < 0 ? -errno : 0;
        while (r == -EINTR);
        if (r < 0)
                return r;
        return si.si_code == CLD_EXITED ? -si.si_status : -EIO;
}

ForkedTask *forked_task_free(ForkedTask *forked) {
        if (!forked)
                return NULL;
        (void) sd_event_source_set_userdata(forked->end, NULL);
        (void) sd_event_source_set_floating(forked->end, true);
        sd_event_source_unref(forked->end);
        free(forked);
        return NULL;
}
