/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An image of the store as a source of documents and layers: the layers are there if it was pulled
 * whole, not if it came from an archive or as a delta. */

#include "agent/image-helper/pull/image-manifest.h"

typedef struct StoredImage {
        const Store *store;        /* borrowed */
        const CatalogImage *image; /* whose layers are read; borrowed */
        int fd;                    /* of the last layer that was opened */
} StoredImage;

/* The provider of 'stored', which must outlive it. */
ImageProvider stored_image_provider(StoredImage *stored);

/* Whether the blobs of all layers are there. */
bool stored_image_has_blobs(const StoredImage *stored);

/* Reads the store's index.json. NULL if there is none yet. 0, or -errno with a message. */
int stored_images_read_index(const Store *store, json_t **ret, Error *reterr);

/* The identity of an entry's image, borrowed; NULL without one. */
const char *stored_image_digest(const json_t *entry);

/* The entry with that name or image digest; NULL if there is none. */
const json_t *stored_images_find(const json_t *index, const char *name);
