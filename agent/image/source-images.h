/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The images that a signed index names, which mainstay-image has read and verified. For pods of the
 * index, they replace registries and archives. */

#include "agent/model/values.h"
#include "common/error.h"

typedef struct SourceImage {
        char *name;   /* the normalised reference */
        char *digest; /* NULL: the index contains it only for other platforms */
        uint64_t bytes;
} SourceImage;

typedef struct SourceImages {
        char *fleet;                 /* NULL: the index names no images */
        char *directory;             /* directory of the index */
        LIST_OF(SourceImage) images; /* sorted by name */
} SourceImages;

/* Reads images.json from that directory: "current" or "next" of a source. If there is none, no
 * images are named. 0; -EBADMSG or another -errno if it cannot be read. */
int source_images_load(const char *directory, SourceImages *ret);
void source_images_done(SourceImages *images);

/* The image of a normalised reference; NULL: the index does not name it. */
const SourceImage *source_images_find(const SourceImages *images, const char *reference);

/* Whether an image with that digest is named. */
bool source_images_have_digest(const SourceImages *images, const char *digest);
