/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One pod's sandbox: the namespaces and mounts that its containers share, and the process that runs
 * them, writes their logs and keeps their exit codes. It decides nothing.
 *
 * Everything that may wait happens in a task (task.h); this process only ever reads, writes and
 * remembers. */

#include "agent/shim/agent-connection.h"
#include "agent/shim/attempt.h"
#include "agent/shim/exec.h"
#include "agent/shim/runtime.h"
#include "agent/shim/task.h"

typedef struct ShimOptions {
        const char *uid;
        const char *run_dir;
        const char *runtime; /* a path, or a name to look for in PATH */
        const char *cgroup;  /* where this process lives; NULL: where it is */
        bool host_network;
        bool host_ipc;
        bool has_systemd_cgroup;       /* systemd makes the containers' groups */
        uint64_t runtime_timeout_usec; /* of one runtime call */
} ShimOptions;

/* A process that ended before we knew whether it is a container's. */
typedef struct UnclaimedExit {
        pid_t pid;
        int status;
} UnclaimedExit;

enum {
        UNCLAIMED_EXITS_MAX = 256,
};

/* The node's namespaces, where the pod has its own; else -EBADF. */
typedef struct HostNamespaces {
        int network_fd;
        int uts_fd;
        int users_fd; /* not the node's: those of the pod, where it has its own */
} HostNamespaces;

#define HOST_NAMESPACES_NULL ((HostNamespaces){ -EBADF, -EBADF, -EBADF })

typedef struct Shim {
        const ShimOptions *options;
        char *pod_dir;      /* <run-dir>/pods/<uid> */
        char *runtime_root; /* the runtime's own state, below pod_dir */
        int epoll_fd;
        HostNamespaces host;
        EpollSource signals;
        AgentConnection connection;
        TaskList tasks;
        AttemptList attempts;
        ProgramList programs;
        unsigned n_sessions;
        LogLimits log_limits;
        pid_t pause_pid; /* first process of the PID namespace that containers share; 0: none */
        UnclaimedExit *unclaimed_exits; /* only while a runtime call is under way */
        size_t n_unclaimed_exits;
        bool setting_up;
        bool ready; /* the pod's mounts are made */
        bool tearing_down;
        bool finished;
} Shim;

/* How the runtime is called for this pod. */
Runtime shim_runtime(const Shim *shim);

/* A process that the runtime left us is our child, running or a zombie that we have yet to see: 1;
 * it has been seen already, with this status: 0; it is none of ours: -ECHILD. */
int shim_claim_process(Shim *shim, pid_t pid, int *ret_status);

/* Serves the socket on standard input until the pod is torn down. 0 or -errno. */
int shim_main(const ShimOptions *options);
