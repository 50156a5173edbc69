/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The images that a signed index names, as mainstay-image has read and verified it: for pods of the
 * index, they take the place of registries and archives. */

#include "agent/model/values.h"
#include "common/error.h"

typedef struct SourceImage {
        char *name;   /* the normalised reference */
        char *digest; /* NULL: the index has it for other platforms only */
        uint64_t bytes;
} SourceImage;

typedef struct SourceImages {
        char *fleet;                 /* NULL: the index names no images */
        char *directory;             /* in which the index lies */
        LIST_OF(SourceImage) images; /* sorted by name */
} SourceImages;

/* Reads images.json of that directory: "current" or "next" of a source. Without one, no image is
 * named. 0; -EBADMSG or another -errno if it cannot be read. */
int source_images_load(const char *directory, SourceImages *ret);
void source_images_done(SourceImages *images);

/* The image of a normalised reference; NULL: the index does not name it. */
const SourceImage *source_images_find(const SourceImages *images, const char *reference);

/* The image of the digest likewise. */
bool source_images_have_digest(const SourceImages *images, const char *digest);
