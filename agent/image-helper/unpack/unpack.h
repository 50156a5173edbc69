/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Unpacks one image into the store: verifies it, unpacks the missing layers, writes its manifest,
 * configuration, record and names. */

#include "agent/image-helper/pull/image-manifest.h"
#include "agent/image-helper/store/store.h"

/* The source of the bytes of layers during unpacking. */
typedef struct LayerDownloadFeed {
        int fd;
        /* A process of a layer has started: it closes descriptors that only the caller may hold. */
        void (*on_worker)(void *userdata);
        int (*on_readable)(void *userdata, Error *reterr); /* 'fd' is readable; or -errno */
        int (*on_tick)(void *userdata, Error *reterr); /* called a few times a second; or -errno */
        /* Layer 'i' is complete and verified, or failed with 'r'. Gives 'r', or why its bytes did
         * not arrive: -errno with a message. */
        int (*on_layer)(void *userdata, size_t i, int r, Error *reterr);
        /* All layers are complete and have been synced with everything written; they are not
         * published yet. */
        int (*on_unpacked)(void *userdata, Error *reterr);
        void *userdata;
} LayerDownloadFeed;

/* The missing layers by their ChainIDs, for the caller that fetches them first. 'ret' has as many
 * members as the image has layers. */
int unpack_find_missing(const CatalogImage *image, const Store *store, bool *ret);

/* 0, or -errno with a message; then nothing was added to the store. 'feed' may be NULL. */
int unpack_image(const CatalogImage *image, const ImageProvider *source,
                 const LayerDownloadFeed *feed, Store *store, char *const *names, Error *reterr);
