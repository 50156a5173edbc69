/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Image volumes: the layers of the image are mounted in the bundle of each container that uses the
 * volume, read-only and noexec, as core/v1 requires. */

#include "agent/bundle/runtime-spec-input.h"

/* Mount options in config.json in addition to the propagation. */
#define IMAGE_VOLUME_OPTIONS "ro,noexec,nosuid,nodev"

/* <bundle>/images/<volume>. NULL: out of memory. */
char *image_volume_path(const RuntimeSpecInput *input, const Volume *volume);

/* The fstab lines for the image volumes that the container mounts; "" if there are none. 0;
 * -ENOMEM; -EINVAL if an image is not available. */
int image_volumes_fstab(const RuntimeSpecInput *input, char **ret, Error *reterr);

/* The digests of these images, one per line: the content of a file in the bundle, which a restarted
 * agent reads. "" if there are none. 0 or -ENOMEM. */
int image_volumes_digests(const RuntimeSpecInput *input, char **ret);
#define IMAGE_VOLUMES_FILE "volume-images"

/* The digests of the image volumes of an attempt whose bundle exists, in an array that the caller
 * frees; empty if it has none. 0 or -errno. */
int bundle_load_volume_images(const BundleConfig *config, const Pod *pod, const char *container,
                              unsigned attempt, char ***ret);
