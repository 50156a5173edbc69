/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Mounts below volumes of ConfigMaps, Secrets and fields of the pod. Such a volume is read-only for
 * its containers, so the runtime cannot create mount points in it. As in the kubelet, they are
 * created in the volume beforehand. The writer does not replace them together with the files, so
 * they stay when the volume is updated. Has no side effects. */

#include "agent/bundle/runtime-spec-input.h"

/* The names at the top of the volume that are mount points, or lead to them, in any container of
 * the pod. They hide keys with the same name. 0 or -ENOMEM. */
int nested_mount_names(const Pod *pod, const Volume *volume, char ***ret);

/* The fstab lines with which the shim creates the mount points that the container needs. 0 or
 * -ENOMEM. */
int nested_mounts_fstab(const RuntimeSpecInput *input, char **ret);
