/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/exec-requests.h"

#include "common/clock.h"
#include "common/list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
        EXEC_ID_SIZE = 56,
};

struct SandboxExec {
        char id[EXEC_ID_SIZE];
        sandbox_exec_done_t done;
        void *userdata;
        SandboxExec **list; /* the list that contains it; NULL: the sandbox was freed */
        SandboxExec *next;
};

SandboxExec *exec_requests_add(SandboxExec **list, sandbox_exec_done_t done, void *userdata) {
        static uint64_t serial, started_usec;
        SandboxExec *exec = calloc(1, sizeof(*exec));

        if (!exec)
                return NULL;
        /* The result of an earlier agent's request must not match, even if that agent had the same
         * process ID. */
        if (serial == 0)
                started_usec = now_boottime_usec();
        (void) snprintf(exec->id, sizeof(exec->id), "exec-%d-%" PRIx64 "-%" PRIu64, (int) getpid(),
                        started_usec, ++serial);
        exec->done = done;
        exec->userdata = userdata;
        exec->list = list;
        LIST_PREPEND(*list, exec);
        return exec;
}

const char *exec_request_id(const SandboxExec *exec) {
        return exec->id;
}

SandboxExec *sandbox_exec_cancel(SandboxExec *exec) {
        if (exec && exec->list)
                LIST_REMOVE(*exec->list, exec);
        free(exec);
        return NULL;
}

void exec_requests_finish(SandboxExec **list, const ShimEvent *result) {
        list_foreach(exec, *list) {
                sandbox_exec_done_t done = exec->done;
                void *userdata = exec->userdata;

                if (!streq_ptr(exec->id, result->id))
                        continue;
                sandbox_exec_cancel(exec);
                done(result, userdata);
                return;
        }
}

void exec_requests_abandon(SandboxExec **list) {
        list_foreach(exec, *list)
                exec->list = NULL;
        *list = NULL;
}
