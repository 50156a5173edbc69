/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Image volumes: each container that mounts one has the image's layers mounted in its bundle,
 * read-only and noexec, as core/v1 requires. */

#include "agent/bundle/runtime-spec-input.h"

/* Mount options in config.json besides the propagation. */
#define IMAGE_VOLUME_OPTIONS "ro,noexec,nosuid,nodev"

/* <bundle>/images/<volume>. NULL: out of memory. */
char *image_volume_path(const RuntimeSpecInput *input, const Volume *volume);

/* The lines of fstab for the image volumes that the container mounts; "" where there are none. 0;
 * -ENOMEM; -EINVAL where an image is not available. */
int image_volumes_fstab(const RuntimeSpecInput *input, char **ret, Error *reterr);
