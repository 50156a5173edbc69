/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Mounts below volumes of ConfigMaps, Secrets and fields of the pod. Such a volume is read-only for
 * its containers, so the runtime cannot make mount points in it: as in the kubelet, they are made
 * in the volume itself. They are not among the files that the writer exchanges, so they stay when
 * the volume is updated. Computes only. */

#include "agent/bundle/runtime-spec-input.h"

/* The names directly in the volume that are mount points, or lead to them, in any container of the
 * pod. A key of that name is hidden by it. 0 or -ENOMEM. */
int nested_mount_names(const Pod *pod, const Volume *volume, char ***ret);

/* The lines of fstab by which the shim makes the mount points that the container needs. 0 or
 * -ENOMEM. */
int nested_mounts_fstab(const RuntimeSpecInput *input, char **ret);
