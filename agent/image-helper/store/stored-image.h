/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An image in the store as a provider of documents and layers: it has its layers' blobs if it was
 * pulled as a whole, but not if it came from an archive or a delta. */

#include "agent/image-helper/pull/image-manifest.h"

typedef struct StoredImage {
        const Store *store;        /* borrowed */
        const CatalogImage *image; /* whose layers are read; borrowed */
        int fd;                    /* the last layer that was opened */
} StoredImage;

/* The provider for 'stored', which must outlive the provider. */
ImageProvider stored_image_provider(StoredImage *stored);

/* Whether the blobs of all layers are present. */
bool stored_image_has_blobs(const StoredImage *stored);

/* Reads the store's index.json. NULL if there is none yet. 0, or -errno with a message. */
int stored_images_read_index(const Store *store, json_t **ret, Error *reterr);

/* The digest of an entry's image, borrowed; NULL: none. */
const char *stored_image_digest(const json_t *entry);

/* The entry with that name or image digest; NULL: none. */
const json_t *stored_images_find(const json_t *index, const char *name);
