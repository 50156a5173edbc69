/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The verbs that do not belong to a running shim: "prepare" before the first shim, "cleanup" after
 * a shim. Both may be repeated at any time. */

#include "common/error.h"

/* Makes 'directory' (0700) a separate private mount: mounts that a shim creates below it stay in
 * the shim's namespace. If it is empty and on a tmpfs, it becomes a tmpfs of the same size and
 * label that is never written to swap space: pods have their Secrets there. It stays as it is if
 * the kernel does not have this option (before Linux 6.4), or if it is already a mount. 0 or
 * -errno. */
int prepare_run_directory(const char *directory, Error *reterr);

/* Makes the kubelet's directory (0750) a shared mount, unless it is part of one, so that volumes
 * that a CSI driver mounts below it reach pods. A failure is logged. */
void prepare_kubelet_directory(const char *directory);

/* Kills all processes in the cgroup and removes it with everything below it. Blocks; not for the
 * loop. 0 if it is gone, or -errno. */
int shim_remove_cgroup(const char *cgroup);

typedef struct PodRemains {
        char **shim_cgroups; /* cgroups of dead shims; a network plugin that still runs in one of
                              * them is allowed to finish */
        char **cgroups;
        const char *emptied; /* a directory whose contents are removed; NULL: none */
        char *const *directories;
        const char *synced; /* a directory with files that the agent syncs; removed last; NULL:
                             * none */
} PodRemains;

/* Kills all processes in the cgroups, first in those of shims, and removes the cgroups, the
 * contents of 'emptied' and, if all cgroups are gone, the directories. Continues after an error.
 * Blocks. 0 or the first -errno. */
int remove_pod_remains(const PodRemains *remains, Error *reterr);
