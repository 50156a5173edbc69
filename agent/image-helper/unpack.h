/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Brings one image into the store: verifies it, unpacks the layers that are missing, writes its
 * manifest, configuration, record and names. */

#include "agent/image-helper/image-manifest.h"
#include "agent/image-helper/store.h"

/* What brings the bytes of layers while they are unpacked. */
typedef struct LayerDownloadFeed {
        int fd;
        int (*on_readable)(void *userdata,
                           Error *reterr);             /* 'fd' has something to say; or -errno */
        int (*on_tick)(void *userdata, Error *reterr); /* a few times a second; or -errno */
        /* Layer 'i' is whole and right, or not: 'r'. */
        void (*on_layer)(void *userdata, size_t i, int r);
        /* All layers are, and have been synced with all that was written. */
        int (*on_unpacked)(void *userdata, Error *reterr);
        void *userdata;
} LayerDownloadFeed;

/* Which layers are missing, by their ChainIDs: for who must fetch them first. 'ret' has as many
 * members as the image has layers. */
int unpack_find_missing(const CatalogImage *image, const Store *store, bool *ret);

/* 0, or -errno with the sentence, and then the store has no more than before. 'feed' may be NULL.
 */
int unpack_image(const CatalogImage *image, const ImageProvider *source,
                 const LayerDownloadFeed *feed, Store *store, char *const *names, Error *reterr);
