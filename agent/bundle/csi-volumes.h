/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Volumes that CSI drivers mount: ephemeral ones, and claims that are bound to a PersistentVolume
 * of a driver. */

#include "agent/bundle/bundle-settings.h"
#include "agent/model/csi-volume.h"

/* 1 if a CSI driver mounts the volume, in which case the caller releases the result; 0 if not;
 * -EAGAIN with a message if an object is not known yet or the volume is not attached yet; -ENOENT
 * or -EINVAL with the reason. */
int find_csi_volume(const BundleConfig *config, const Pod *pod, const Volume *volume,
                    CsiVolume *ret, Error *reterr);

/* Sets the tokens that the volume's driver requires. 0; -EAGAIN with a message if one is still
 * being requested; or -errno with a message. */
int csi_volume_add_tokens(const BundleConfig *config, const Pod *pod, CsiVolume *volume,
                          Error *reterr);

/* Sets the SELinux label with which the volume is mounted, if its driver supports that and only one
 * pod uses the volume at a time. 0, or -errno with the kubelet's message. */
int csi_volume_add_selinux_label(const BundleConfig *config, const Pod *pod, const Volume *volume,
                                 CsiVolume *csi, Error *reterr);

/* Sets the Secret with which the driver expands the volume. 0, or -errno with the kubelet's
 * message. */
int csi_volume_add_expand_secret(const BundleConfig *config, CsiVolume *volume, Error *reterr);

/* The path at which the driver has mounted the volume, or its block device; the caller frees it.
 * NULL: out of memory. */
char *csi_volume_path(const BundleConfig *config, const Pod *pod, const CsiVolume *volume);
