/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The images of a revision by digest, so that a rollback uses the images with which the revision
 * was good, even if a tag has come to refer to another image. */

#include "agent/image/image-set.h"
#include "agent/model/pod.h"
#include "agent/model/status.h"

/* The digest of the image that now has this name, borrowed until the image store changes; or NULL.
 */
typedef const char *(*image_digest_of_t)(const char *reference, void *userdata);

/* The digests of the images of the pod's containers, in their order, and of its image volumes; "-"
 * for unknown ones. The caller frees the result; NULL: out of memory. */
char *rollout_images_format(const Pod *pod, const PodStatus *status, image_digest_of_t digest_of,
                            void *userdata);

/* Adds "@sha256:…" to those images of the pod whose names refer to other images now. 0 or
 * -ENOMEM. */
int rollout_images_pin(Pod *pod, const char *images, image_digest_of_t digest_of, void *userdata);

/* Adds the digests. 'images' may be NULL. */
void rollout_images_list(const char *images, ImageSet *ret);
