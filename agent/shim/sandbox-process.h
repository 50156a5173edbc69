/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Turns this process into a pod sandbox: drops everything that it inherited from the agent, and
 * enters its own namespaces and cgroup. */

#include "common/error.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct ShimOptions {
        const char *uid;
        const char *run_dir;
        const char *runtime; /* a path, or a name to look up in PATH */
        const char *cgroup;  /* for this process; NULL: unchanged */
        bool host_network;
        bool host_ipc;
        bool has_systemd_cgroup;       /* systemd creates the containers' cgroups */
        uint64_t runtime_timeout_usec; /* limit of one runtime call */
} ShimOptions;

/* The namespaces of the node, if the pod has its own; else -EBADF. */
typedef struct HostNamespaces {
        int network_fd;
        int uts_fd;
        int users_fd; /* the pod's own namespace, not the node's */
} HostNamespaces;

#define HOST_NAMESPACES_NULL ((HostNamespaces){ -EBADF, -EBADF, -EBADF })

/* Takes the socket from standard input, which becomes /dev/null, and closes all inherited
 * descriptors. A descriptor or -errno. */
int sandbox_process_take_socket(void);

/* Sets session, signals, priorities, cgroup and namespaces (hostNetwork, hostIPC, hostUsers), and
 * brings up the loopback interface of its own network namespace. 'ret_host' receives descriptors of
 * the node's namespaces that were left. 0; or -errno if a namespace cannot be created; other
 * failures are only logged. */
int sandbox_process_isolate(const ShimOptions *options, HostNamespaces *ret_host, Error *reterr);
