/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/pids.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const char file_name[] = "pid-namespace";
static const char name[] = "mainstay-pause";

/* For ps(1): its command line is a copy of the shim's, in the same place. */
static void rename_process(void) {
        size_t length = strlen(program_invocation_name);

        (void) prctl(PR_SET_NAME, name);
        memset(program_invocation_name, '\0', length);
        memcpy(program_invocation_name, name, MIN(length, strlen(name)));
}

/* Children of an ignored SIGCHLD leave no zombies, so nothing ever wakes us. Signals from within
 * the namespace do not reach its first process. */
static void idle(void) __attribute__((noreturn));
static void idle(void) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        rename_process();
        (void) signal(SIGCHLD, SIG_IGN);
        (void) close_range(0, UINT_MAX, 0);
        for (;;)
                (void) pause();
}

int pids_start(const char *pod_dir, pid_t *ret_pid) {
        cleanup_free char *path = path_join(pod_dir, file_name);
        long pid;

        if (!path)
                return -ENOMEM;
        if (access(path, F_OK) < 0)
                return errno == ENOENT ? 0 : -errno;
        /* As fork(), which cannot be told of namespaces: only the child is in the new one. */
        pid = syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
        if (pid < 0)
                return -errno;
        if (pid == 0)
                idle();
        *ret_pid = (pid_t) pid;
        return 1;
}

int pids_bind(const char *pod_dir, pid_t pid, Error *reterr) {
        cleanup_free char *path = path_join(pod_dir, file_name);
        char namespace[64];

        if (!path)
                return -ENOMEM;
        (void) snprintf(namespace, sizeof(namespace), "/proc/%d/ns/pid", (int) pid);
        if (mount(namespace, path, NULL, MS_BIND, NULL) < 0)
                return error_setf(reterr, errno, "cannot keep the pod's PID namespace at '%s': %s",
                                  path, strerror(errno));
        return 0;
}

void pids_end(pid_t pid) {
        if (pid <= 0)
                return;
        (void) kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}
