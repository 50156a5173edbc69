/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Volumes with content from elsewhere: persistentVolumeClaim (claimName), which exists only in pods
 * of an API server and is resolved to a directory of this node or an export of an NFS server; nfs;
 * and the kinds that this node cannot mount. */

#include "agent/bundle/bundle-settings.h"

/* The bound claim of a volume. Returns the same as find_persistent_volume(). */
int find_volume_claim(const BundleConfig *config, const Pod *pod, const Volume *volume,
                      const DataObject **ret, Error *reterr);

/* The PersistentVolume to which the claim of a volume is bound. -ENOENT or -EINVAL with the reason;
 * -EAGAIN if claim or volume have not been received yet. */
int find_persistent_volume(const BundleConfig *config, const Pod *pod, const Volume *volume,
                           const DataObject **ret, Error *reterr);

/* The directory or file of the node to which the claim of a volume is bound, borrowed from the
 * PersistentVolume. -ENOENT or -EINVAL with the reason; -EAGAIN if claim or volume have not been
 * received yet. */
int find_claimed_directory(const BundleConfig *config, const Pod *pod, const Volume *volume,
                           HostPathVolumeSource *ret, Error *reterr);

/* Whether the claim of a volume is bound to a local volume that the pod may write to, in which case
 * fsGroup is applied to the volume. */
bool is_local_volume_writable(const BundleConfig *config, const Pod *pod, const Volume *volume);

/* An export of an NFS server; all members are borrowed. */
typedef struct NfsExport {
        const NfsVolumeSource *source;
        char **mount_options; /* or NULL */
        bool read_only;
} NfsExport;

/* 1 if the volume is an NFS export, or its claim is bound to one; 0 if it is of another kind;
 * otherwise like find_claimed_directory(). */
int find_nfs_export(const BundleConfig *config, const Pod *pod, const Volume *volume,
                    NfsExport *ret, Error *reterr);

/* Whether its claim is bound to a block device. */
bool is_block_volume(const BundleConfig *config, const Pod *pod, const Volume *volume);

/* Whether all volumes of the pod can be mounted here. 0, or the first error: MountVolume.SetUp
 * failed for volume "x" : … */
int check_pod_volumes(const BundleConfig *config, const Pod *pod, Error *reterr);
