/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The state of a pod sandbox, which the loop (shim.c) and the operations on it share: containers
 * (container.c), programs (container-exec.c) and sessions (shim-session.c). This header only
 * declares it.
 */

#include "agent/shim/agent-connection.h"
#include "agent/shim/attempt.h"
#include "agent/shim/copier.h"
#include "agent/shim/program-list.h"
#include "agent/shim/runtime.h"
#include "agent/shim/sandbox-process.h"
#include "agent/shim/task.h"

/* A process that ended before it was known whether it belonged to a container. */
typedef struct UnclaimedExit {
        pid_t pid;
        int status;
} UnclaimedExit;

typedef struct Shim Shim;

struct Shim {
        const ShimOptions *options;
        char *pod_dir;      /* <run-dir>/pods/<uid> */
        char *runtime_root; /* state of the runtime, below pod_dir */
        int epoll_fd;
        HostNamespaces host;
        EpollSource signals;
        AgentConnection connection;
        Copier copier;
        TaskList tasks;
        AttemptList attempts;
        ProgramList programs;
        struct DeviceUpdate *device_updates; /* device updates in order */
        unsigned n_sessions;
        LogLimits log_limits;
        pid_t pause_pid;                /* first process of the shared PID namespace; 0: none */
        UnclaimedExit *unclaimed_exits; /* only while a runtime call is in progress */
        size_t n_unclaimed_exits;
        bool setting_up;
        bool ready; /* the pod's mounts have been made */
        bool tearing_down;
        bool finished;
};

/* The runtime's settings for this pod. */
Runtime shim_runtime(const Shim *shim);

/* Checks that a process that the runtime has left is a child of the shim: 1 if it is running or
 * waits to be reaped; 0 if it has been reaped, with this status; -ECHILD if it is not a child. */
int shim_claim_process(Shim *shim, pid_t pid, int *ret_status);

/* Records that an unknown process has ended, for shim_claim_process(). The oldest records are
 * dropped first. */
void shim_add_unclaimed_exit(Shim *shim, pid_t pid, int status);

/* Drops all records, once no runtime call is in progress. */
void shim_drop_unclaimed_exits(Shim *shim);
