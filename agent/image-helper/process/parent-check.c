/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/process/parent-check.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

static pid_t own_parent;
static bool is_child;

static void watch_parent(pid_t parent) {
        is_child = true;
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        parent_check_set_parent(parent);
        parent_check_exit_if_orphaned(); /* in case it ended before the signal was set */
}

pid_t parent_check_fork(void) {
        pid_t parent = getpid(), pid = fork();

        if (pid == 0)
                watch_parent(parent);
        return pid;
}

pid_t parent_check_fork_with_pidfd(int *ret_pidfd) {
        pid_t parent = getpid(), pid;
        int pidfd = -EBADF;

        pid = (pid_t) syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, NULL, &pidfd, NULL, NULL);
        if (pid == 0)
                watch_parent(parent);
        else if (pid > 0)
                *ret_pidfd = pidfd;
        return pid;
}

void parent_check_kill(int pidfd) {
        (void) syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

bool parent_check_is_child(void) {
        return is_child;
}

int parent_check_error_of_status(int status) {
        return WIFEXITED(status) && WEXITSTATUS(status) == EX_TEMPFAIL ? -ENOMEM : -EIO;
}

void parent_check_set_parent(pid_t parent) {
        own_parent = parent;
}

void parent_check_exit_if_orphaned(void) {
        if (own_parent > 0 && getppid() != own_parent)
                _exit(0);
}
