/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The verbs that run without a pod: "prepare" before the first shim, "cleanup" after a shim. Both
 * may be repeated at any time. */

#include "common/error.h"

/* Makes 'directory' (0700) a separate private mount: mounts that a shim creates below it stay in
 * the shim's namespace. If it is empty and on a tmpfs, it becomes a tmpfs of the same size and
 * label that is never written to swap space: pods have their Secrets there. Without the kernel's
 * option for that, of Linux 6.4, and when it is a mount already, it stays as it is. 0 or -errno. */
int prepare_run_directory(const char *directory, Error *reterr);

/* Makes the kubelet's directory (0750) a shared mount, unless it is a part of one: volumes that a
 * CSI driver mounts below it reach pods. A failure is logged. */
void prepare_kubelet_directory(const char *directory);

/* Kills all processes in the cgroup and removes it, with all below. Blocks; not for the loop. 0 if
 * it is gone, or -errno. */
int shim_remove_cgroup(const char *cgroup);

typedef struct PodRemains {
        char **shim_cgroups; /* in which a network plugin of a dead shim may still run: it may
                              * end */
        char **cgroups;
        const char *emptied; /* a directory whose contents are removed; NULL: none */
        char *const *directories;
        const char *synced; /* a directory whose files the agent syncs; removed last; NULL: none */
} PodRemains;

/* Kills all processes in the cgroups, in the given order, those of shims first, and removes the
 * cgroups, the contents of 'emptied', and the directories: these only when all cgroups are gone.
 * Otherwise removes as much as possible. Blocks. 0 or the first -errno. */
int remove_pod_remains(const PodRemains *remains, Error *reterr);
