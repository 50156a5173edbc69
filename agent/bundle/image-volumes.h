/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Volumes that are images: each container that mounts one has the image's layers mounted in its
 * bundle, read-only and without programs that could be run, as core/v1 says of them. */

#include "agent/bundle/runtime-spec.h"

/* What the mount entries of config.json carry beside their propagation. */
#define IMAGE_VOLUME_OPTIONS "ro,noexec,nosuid,nodev"

/* <bundle>/images/<volume>. NULL: no memory. */
char *image_volume_path(const RuntimeSpecInput *input, const Volume *volume);

/* The lines of fstab for those that the container mounts. "" where there is none. 0; -ENOMEM;
 * -EINVAL for one whose image nobody has got. */
int image_volumes_fstab(const RuntimeSpecInput *input, char **ret, Error *reterr);
