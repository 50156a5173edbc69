/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/pid-namespace.h"

#include "agent/shim/pause-program.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/privileges.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
        OVERFLOW_ID = 65534 /* the kernel shows it for an unmapped ID */
};

static const char file_name[] = "pid-namespace";
/* An empty file system, which the pod's containers see as /proc/1/root. */
static int enter_empty_root(void) {
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
            mount("mainstay-pause", "/proc", "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                  "size=4k,nr_inodes=1,mode=555") < 0 ||
            chdir("/proc") < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
            umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
                return -errno;
        return 0;
}

/* A container that may trace the processes of its pod can control this process and read its memory.
 * So this process runs as an unknown user, without capabilities, and without files or memory of the
 * node. */
static int confine_pause_process(bool in_user_namespace) {
        int r = in_user_namespace ? privileges_set_ids(0, 0) : 0;

        if (r < 0)
                return r;
        r = enter_empty_root();
        if (r < 0)
                return r;
        privileges_drop_bounding_set();
        r = privileges_set_ids(OVERFLOW_ID, OVERFLOW_ID);
        if (r < 0)
                return r;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
            prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) /* changing the IDs has reset this attribute */
                return -errno;
        return 0;
}

/* Leaves open only a pipe without a writer at 0 and 1, 'ready_fd' as standard error, and the
 * program, which is closed when it is executed. */
static int arrange_descriptors(int ready_fd, int *program_fd) {
        int pipes[2];

        *program_fd = fcntl(*program_fd, F_DUPFD_CLOEXEC, 3);
        if (*program_fd < 0 || dup2(ready_fd, STDERR_FILENO) < 0 || close_range(0, 1, 0) < 0 ||
            (*program_fd > 3 && close_range(3, (unsigned) *program_fd - 1, 0) < 0) ||
            close_range((unsigned) *program_fd + 1, UINT_MAX, 0) < 0 ||
            pipe2(pipes, O_CLOEXEC) < 0 || fcntl(pipes[0], F_SETFD, 0) < 0 ||
            fcntl(pipes[1], F_SETFD, 0) < 0)
                return -errno;
        return 0;
}

/* With SIGCHLD ignored, children leave no zombies and the process never wakes. Signals from within
 * the namespace do not reach its first process. 'ready_fd' gets 0 or -errno. */
static void run_pause_process(int ready_fd, int program_fd, bool in_user_namespace)
        __attribute__((noreturn));
static void run_pause_process(int ready_fd, int program_fd, bool in_user_namespace) {
        char argument[] = "mainstay-pause", *arguments[] = { argument, NULL };
        char *no_variables[] = { NULL };
        int r;

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void) signal(SIGCHLD, SIG_IGN);
        r = arrange_descriptors(ready_fd, &program_fd);
        if (r >= 0)
                r = confine_pause_process(in_user_namespace);
        if (r >= 0) {
                (void) syscall(SYS_execveat, program_fd, "", arguments, no_variables,
                               AT_EMPTY_PATH);
                r = -errno;
        }
        if (write(STDERR_FILENO, &r, sizeof(r)) < 0)
                (void) 0; /* the reader sees the end of the pipe */
        _exit(EXIT_FAILURE);
}

/* A PID namespace belongs to the user namespace of its creator, so a child first enters that user
 * namespace and then creates a sibling, which is also a child of the shim. */
static long clone_in_user_namespace(int users_fd, int ready_fd, int program_fd) {
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
                        run_pause_process(ready_fd, program_fd, true);
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

/* Like fork(), but the child is in a new PID namespace. */
static long clone_pause_process(int users_fd, int ready_fd, int program_fd) {
        long pid;

        if (users_fd >= 0)
                return clone_in_user_namespace(users_fd, ready_fd, program_fd);
        pid = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
        if (pid == 0)
                run_pause_process(ready_fd, program_fd, false);
        return pid;
}

int pid_namespace_start(const char *pod_dir, int users_fd, pid_t *ret_pid) {
        cleanup_free char *path = path_join(pod_dir, file_name);
        cleanup_close int read_fd = -EBADF, ready_fd = -EBADF, program_fd = -EBADF;
        int pipes[2], r = 0;
        long pid;

        if (!path)
                return -ENOMEM;
        if (access(path, F_OK) < 0)
                return errno == ENOENT ? 0 : -errno;
        program_fd = pause_program_open();
        if (program_fd < 0)
                return program_fd;
        if (pipe2(pipes, O_CLOEXEC) < 0)
                return -errno;
        read_fd = pipes[0];
        ready_fd = pipes[1];
        pid = clone_pause_process(users_fd, ready_fd, program_fd);
        if (pid < 0)
                return -errno;
        ready_fd = close_fd(ready_fd);
        /* It must be confined before any container can access it. */
        if (read(read_fd, &r, sizeof(r)) != sizeof(r))
                r = -EIO;
        if (r < 0) {
                pid_namespace_end((pid_t) pid);
                return r;
        }
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
