/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/sandbox-state.h"

#include "common/cleanup.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum {
        UNCLAIMED_EXITS_MAX = 256,
};

Runtime shim_runtime(const Shim *shim) {
        return (Runtime){
                .program = shim->options->runtime,
                .root = shim->runtime_root,
                .has_systemd_cgroup = shim->options->has_systemd_cgroup,
                .timeout_usec = shim->options->runtime_timeout_usec,
        };
}

int shim_claim_process(Shim *shim, pid_t pid, int *ret_status) {
        siginfo_t info;

        if (waitid(P_PID, (id_t) pid, &info, WEXITED | WNOHANG | WNOWAIT) >= 0)
                return 1;
        for (size_t i = shim->n_unclaimed_exits; i > 0; i--)
                if (shim->unclaimed_exits[i - 1].pid == pid) {
                        *ret_status = shim->unclaimed_exits[i - 1].status;
                        return 0;
                }
        return -ECHILD;
}

/* A container may end before the runtime call that started it: until that returns, every unknown
 * process may be one. */
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
