/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a container sees of its pod's volumes and files: which part of each, where, and how.
 * Computed only. */

#include "agent/bundle/runtime-spec.h"

/* One mount of config.json. */
typedef struct MountEntry {
        char *destination;
        char *source;
        const char *options; /* "rbind,rprivate,ro" */
} MountEntry;

typedef LIST_OF(MountEntry) MountList;

void mount_list_done(MountList *list);

/* All volume mounts and, unless a volume lies there, the pod's own /dev/shm and files of /etc;
 * those nearer to the root first, whatever their order in the manifest. Then the file of the
 * termination message. 0 or -ENOMEM. */
int container_mounts(const RuntimeSpecInput *input, MountList *ret);

/* linux.rootfsPropagation, for mounts whose changes shall pass; NULL: the runtime's own. */
const char *rootfs_propagation(const Container *container);

/* The lines of fstab by which the shim finds a subPath beneath its volume and binds it into the
 * bundle, from where config.json takes it; and whole volumes, for a pod with users of its own. ""
 * where there is none. -EINVAL with the kubelet's sentence where an expression cannot be expanded;
 * else as container_variables(). */
int sub_paths_fstab(const RuntimeSpecInput *input, char **ret, Error *reterr);

/* The file that the container may write its last words into. NULL: no memory. */
char *termination_log_path(const BundleConfig *config, const char *uid, const char *container,
                           unsigned attempt);
