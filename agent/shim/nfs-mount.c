/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/nfs-mount.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/utf8.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM  "mount.nfs"
#define SYS_PATH "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"

enum {
        EXIT_NO_PROGRAM = 127,
        EXIT_NO_NETWORK = 126,
        OUTPUT_MAX = 2048,
};

static _Noreturn void run_mount_nfs(const char *source, const char *target, const char *options,
                                    int network_fd, int output_fd) {
        const char *const argv[] = { PROGRAM, source, target, options[0] ? "-o" : NULL,
                                     options, NULL };

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (network_fd >= 0 && setns(network_fd, CLONE_NEWNET) < 0)
                _exit(EXIT_NO_NETWORK);
        if (dup2(output_fd, STDOUT_FILENO) < 0 || dup2(output_fd, STDERR_FILENO) < 0)
                _exit(EXIT_FAILURE);
        if (!getenv("PATH"))
                (void) setenv("PATH", SYS_PATH, 1);
        (void) execvp(PROGRAM, (char **) (uintptr_t) argv);
        _exit(EXIT_NO_PROGRAM);
}

/* The last line of the program's output, if it is text. */
static char *last_line(int output_fd) {
        char text[OUTPUT_MAX + 1];
        off_t size = lseek(output_fd, 0, SEEK_END);
        ssize_t n = size < 0 ? -1
                             : pread(output_fd, text, OUTPUT_MAX,
                                     size > OUTPUT_MAX ? size - OUTPUT_MAX : 0);
        char *line;

        text[MAX(n, (ssize_t) 0)] = '\0';
        for (char *end = text + strlen(text); end > text && strchr("\n ", end[-1]);)
                *--end = '\0';
        line = strrchr(text, '\n');
        line = strdup(line ? line + 1 : text);
        if (line)
                utf8_sanitize(line);
        return line;
}

static int explain_failure(int status, const char *source, int output_fd, Error *reterr) {
        cleanup_free char *line = NULL;

        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_PROGRAM)
                return error_setf(reterr, ENOENT,
                                  "mount failed: this node has no " PROGRAM " to mount %s; install "
                                  "the package nfs-common (Debian, Ubuntu), nfs-utils (Fedora, "
                                  "Alpine, Arch) or nfs-client (SUSE)",
                                  source);
        if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NO_NETWORK)
                return error_setf(reterr, EPERM,
                                  "mount failed: cannot enter the network of the node");
        line = last_line(output_fd);
        if (WIFSIGNALED(status))
                return error_setf(reterr, EIO,
                                  "mount failed: " PROGRAM " %s was killed by signal %d", source,
                                  WTERMSIG(status));
        return error_setf(reterr, EIO, "mount failed: exit status %d: mounting %s: %s",
                          WEXITSTATUS(status), source, strna(line));
}

int nfs_mount(const char *source, const char *target, const char *options, int network_fd,
              Error *reterr) {
        /* The output goes to a file, because a daemon that mount.nfs leaves behind would keep a
         * pipe open. */
        cleanup_close int output_fd = memfd_create("mount.nfs", MFD_CLOEXEC);
        int status = 0;
        pid_t pid;

        if (output_fd < 0)
                return -errno;
        pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                run_mount_nfs(source, target, options, network_fd, output_fd);
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        return WIFEXITED(status) && WEXITSTATUS(status) == 0
                       ? 0
                       : explain_failure(status, source, output_fd, reterr);
}
