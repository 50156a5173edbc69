/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/pid-namespace.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const char file_name[] = "pid-namespace";
static const char name[] = "mainstay-pause";

/* For ps(1): the command line is a copy of the shim's, in the same place. */
static void rename_process(void) {
        size_t length = strlen(program_invocation_name);

        (void) prctl(PR_SET_NAME, name);
        memset(program_invocation_name, '\0', length);
        memcpy(program_invocation_name, name, MIN(length, strlen(name)));
}

/* With SIGCHLD ignored, children leave no zombies and the process never wakes. Signals from within
 * the namespace do not reach its first process. */
static void run_pause_process(void) __attribute__((noreturn));
static void run_pause_process(void) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        rename_process();
        (void) signal(SIGCHLD, SIG_IGN);
        (void) close_range(0, UINT_MAX, 0);
        for (;;)
                (void) pause();
}

/* The namespace belongs to the user namespace of its creator. So a child enters that one first, and
 * creates a sibling, which is our child too. */
static long clone_in_user_namespace(int users_fd) {
        int pipes[2], status;
        pid_t helper;
        long pid = -1;

        if (pipe2(pipes, O_CLOEXEC) < 0)
                return -1;
        helper = fork();
        if (helper == 0) {
                pid = setns(users_fd, CLONE_NEWUSER);
                if (pid >= 0)
                        pid = syscall(SYS_clone, CLONE_NEWPID | CLONE_PARENT | SIGCHLD, NULL, NULL,
                                      NULL, NULL);
                if (pid == 0)
                        run_pause_process();
                _exit(write(pipes[1], &pid, sizeof(pid)) == sizeof(pid) ? EXIT_SUCCESS
                                                                        : EXIT_FAILURE);
        }
        close_fd(pipes[1]);
        if (helper > 0 && read(pipes[0], &pid, sizeof(pid)) != sizeof(pid))
                pid = -1;
        while (helper > 0 && waitpid(helper, &status, 0) < 0 && errno == EINTR)
                ;
        close_fd(pipes[0]);
        if (pid < 0)
                errno = EPERM;
        return pid;
}

int pid_namespace_start(const char *pod_dir, int users_fd, pid_t *ret_pid) {
        cleanup_free char *path = path_join(pod_dir, file_name);
        long pid;

        if (!path)
                return -ENOMEM;
        if (access(path, F_OK) < 0)
                return errno == ENOENT ? 0 : -errno;
        /* Like fork(), but the child is in a new PID namespace. */
        if (users_fd >= 0)
                pid = clone_in_user_namespace(users_fd);
        else
                pid = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
        if (pid < 0)
                return -errno;
        if (pid == 0)
                run_pause_process();
        *ret_pid = (pid_t) pid;
        return 1;
}

static int bind_pid_namespace(const char *namespace, const char *directory, Error *reterr) {
        cleanup_free char *path = path_join(directory, file_name);

        if (!path)
                return -ENOMEM;
        if (mount(namespace, path, NULL, MS_BIND, NULL) < 0)
                return error_setf(reterr, errno, "cannot keep a PID namespace at '%s': %s", path,
                                  strerror(errno));
        return 0;
}

int pid_namespace_bind(const char *pod_dir, pid_t pid, Error *reterr) {
        char namespace[64];

        (void) snprintf(namespace, sizeof(namespace), "/proc/%d/ns/pid", (int) pid);
        return bind_pid_namespace(namespace, pod_dir, reterr);
}

int pid_namespace_bind_fd(const char *bundle, int fd, Error *reterr) {
        char namespace[64];

        (void) snprintf(namespace, sizeof(namespace), "/proc/self/fd/%d", fd);
        return bind_pid_namespace(namespace, bundle, reterr);
}

void pid_namespace_end(pid_t pid) {
        if (pid <= 0)
                return;
        (void) kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}
