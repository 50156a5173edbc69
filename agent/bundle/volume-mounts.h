/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The volume mounts of a container (volumeMounts, subPath, mount propagation) and its files of
 * /etc. Has no side effects; the runtime and the shim perform the mounts. */

#include "agent/bundle/runtime-spec-input.h"

/* A mount in config.json. */
typedef struct MountEntry {
        char *destination; /* absolute and plain: a relative mountPath is resolved against the
                            * root */
        char *source;
        const char *options;       /* "rbind,rprivate,ro" */
        const Volume *data_volume; /* the volume that it mounts as a whole, if its content is from a
                                    * ConfigMap, Secret or fields of the pod; else NULL. Borrowed */
} MountEntry;

typedef LIST_OF(MountEntry) MountList;

void mount_list_done(MountList *list);

/* 0, or -BUNDLE_CONFIG_ERROR for an option that only a newer API server supports. */
int check_container_mounts(const Container *container, Error *reterr);

/* All volume mounts and, unless a volume is mounted there, the pod's /dev/shm and files of /etc,
 * and the volumes that the image declares; sorted by depth, regardless of their order in the
 * manifest. Then the file of the termination message. 0 or -ENOMEM. */
int container_mounts(const RuntimeSpecInput *input, MountList *ret);

/* Whether the mount has a subPath or subPathExpr. */
bool is_part_of_volume(const VolumeMount *mount);

/* linux.rootfsPropagation, for mounts with mount propagation; NULL: the runtime's default. */
const char *rootfs_propagation(const Container *container);

/* The fstab lines with which the shim resolves a subPath below its volume and binds it into the
 * bundle, to which config.json refers; for a pod with its own user namespace also for whole
 * volumes. "" if there are none. -EINVAL with the kubelet's message if subPathExpr cannot be
 * expanded; otherwise like container_variables(). */
int sub_paths_fstab(const RuntimeSpecInput *input, char **ret, Error *reterr);

/* The file behind terminationMessagePath. NULL: out of memory. */
char *termination_log_path(const BundleConfig *config, const char *uid, const char *container,
                           unsigned attempt);
