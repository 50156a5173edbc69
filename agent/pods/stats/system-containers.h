/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cgroups of the node that the kubelet reports as system containers: its own ("kubelet"), that
 * of the container runtime ("runtime"), which here is the cgroup of the shims, and that of all pods
 * ("pods"). There is no "misc", because no process is moved to such a cgroup. */

#include "agent/bundle/bundle-settings.h"
#include "agent/sandbox/sandbox.h"

enum {
        SYSTEM_CONTAINERS_MAX = 5
};

typedef struct SystemContainer {
        const char *name;
        bool is_qos_class; /* not one of the three, but a cgroup below "pods" */
        char *cgroup;
        uint64_t started_at; /* realtime; 0: unknown */
} SystemContainer;

typedef struct SystemContainers {
        SystemContainer items[SYSTEM_CONTAINERS_MAX];
        size_t n;
} SystemContainers;

/* Finds the system containers that exist now, and the cgroups of the QoS classes. 'started_at' is
 * the start time of the agent. The start times of the others are kept from an earlier call, because
 * the kernel may forget when it created a cgroup. */
void system_containers_find(SystemContainers *containers, const BundleConfig *bundle,
                            const SandboxConfig *sandbox, uint64_t started_at);

void system_containers_done(SystemContainers *containers);
