/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Selects the images for this machine in a signed index. */

#include "agent/model/source-index.h"
#include "common/json-text.h"

#define SOURCE_IMAGES_NAME "images.json"

/* The best platform of an image for this machine; NULL: none is suitable. */
const SourceIndexPlatform *source_image_choose_platform(const SourceIndexImage *image);

/* The data that the agent reads (agent/image/source-images.h):
 *
 *     {"fleet": "…", "images": [{"name": "…", "digest": "sha256:…", "bytes": …}, …]}
 *
 * without a digest if no platform is for this machine. The caller frees it; NULL: out of memory. */
json_t *source_images_to_json(const SourceIndex *index);
