/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/sandbox-state.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
        UNCLAIMED_EXITS_MAX = 256,
        PROC_STAT_MAX = 1024,
        PARENT_END_MSEC = 10 * 1000,
};

Runtime shim_runtime(const Shim *shim) {
        return (Runtime){
                .program = shim->options->runtime,
                .root = shim->runtime_root,
                .copy_fd = -EBADF,
                .has_systemd_cgroup = shim->options->has_systemd_cgroup,
                .timeout_usec = shim->options->runtime_timeout_usec,
        };
}

/* Field 4 of proc_pid_stat(5), or -errno. */
static pid_t parent_of(pid_t pid) {
        cleanup_free char *text = NULL;
        char path[sizeof("/proc/4294967295/stat")];
        const char *rest;
        int parent, r;

        (void) snprintf(path, sizeof(path), "/proc/%d/stat", (int) pid);
        r = read_file_at(AT_FDCWD, path, PROC_STAT_MAX, &text, NULL);
        if (r < 0)
                return r;
        rest = strrchr(text, ')');
        return rest && sscanf(rest + 1, " %*c %d", &parent) == 1 ? parent : -EINVAL;
}

static bool is_child(pid_t pid) {
        siginfo_t info;

        return waitid(P_PID, (id_t) pid, &info, WEXITED | WNOHANG | WNOWAIT) >= 0;
}

/* crun leaves the container to another crun process, which exits shortly after crun itself. Then
 * the container becomes the shim's child. */
static void wait_for_end_of_parent(pid_t pid) {
        cleanup_close int fd = -EBADF;
        struct pollfd poll_fd = { .events = POLLIN };
        pid_t parent = parent_of(pid);

        if (parent <= 1 || !is_child(parent))
                return;
        fd = pidfd_open(parent, 0);
        poll_fd.fd = fd;
        if (fd >= 0)
                (void) poll(&poll_fd, 1, PARENT_END_MSEC);
}

int shim_claim_process(Shim *shim, pid_t pid, int *ret_status) {
        if (is_child(pid))
                return 1;
        for (size_t i = shim->n_unclaimed_exits; i > 0; i--)
                if (shim->unclaimed_exits[i - 1].pid == pid) {
                        *ret_status = shim->unclaimed_exits[i - 1].status;
                        return 0;
                }
        wait_for_end_of_parent(pid);
        return is_child(pid) ? 1 : -ECHILD;
}

/* A container may end before the runtime call that started it returns; until then, every unknown
 * process may be a container. */
void shim_add_unclaimed_exit(Shim *shim, pid_t pid, int status) {
        if (!shim->unclaimed_exits)
                shim->unclaimed_exits = calloc(UNCLAIMED_EXITS_MAX, sizeof(UnclaimedExit));
        if (!shim->unclaimed_exits)
                return;
        if (shim->n_unclaimed_exits == UNCLAIMED_EXITS_MAX)
                memmove(shim->unclaimed_exits, shim->unclaimed_exits + 1,
                        --shim->n_unclaimed_exits * sizeof(UnclaimedExit));
        shim->unclaimed_exits[shim->n_unclaimed_exits++] = (UnclaimedExit){ pid, status };
}

void shim_drop_unclaimed_exits(Shim *shim) {
        free(TAKE_PTR(shim->unclaimed_exits));
        shim->n_unclaimed_exits = 0;
}
