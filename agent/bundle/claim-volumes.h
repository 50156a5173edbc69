/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Volumes that only pods of an API server have: persistentVolumeClaim (claimName), which is
 * resolved to a directory of this node, and the kinds that it cannot mount. */

#include "agent/bundle/bundle-settings.h"

/* The directory or file of the node to which the claim of a volume is bound, borrowed from the
 * PersistentVolume. -ENOENT or -EINVAL with the reason; -EAGAIN if claim or volume have not been
 * received yet. */
int find_claimed_directory(const BundleConfig *config, const Pod *pod, const Volume *volume,
                           HostPathVolumeSource *ret, Error *reterr);

/* The claim of a volume is bound to a local volume, which the pod may write: it gets fsGroup. */
bool is_local_volume_writable(const BundleConfig *config, const Pod *pod, const Volume *volume);

/* Whether all volumes of the pod can be mounted here. 0, or the first error: MountVolume.SetUp
 * failed for volume "x" : … */
int check_pod_volumes(const BundleConfig *config, const Pod *pod, Error *reterr);
