/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Unpacks one image into the store: verifies it, unpacks the missing layers, and writes its
 * manifest, configuration, record and names. */

#include "agent/image-helper/pull/image-manifest.h"
#include "agent/image-helper/store/store.h"

/* Provides the bytes of layers while they are downloaded. */
typedef struct LayerDownloadFeed {
        int fd;
        /* Called in the process of a layer after it has started: closes descriptors that only the
         * caller may have. */
        void (*on_worker)(void *userdata);
        int (*on_readable)(void *userdata, Error *reterr); /* Called when 'fd' is readable; may
                                                            * return -errno. */
        int (*on_tick)(void *userdata, Error *reterr); /* Called a few times per second; may return
                                                        * -errno. */
        /* Layer 'i' is complete and verified, or has failed with 'r'. Returns 'r', or -errno with a
         * message if its bytes did not arrive. */
        int (*on_layer)(void *userdata, size_t i, int r, Error *reterr);
        /* All layers are complete, and everything written has been synced but not published yet. */
        int (*on_unpacked)(void *userdata, Error *reterr);
        void *userdata;
} LayerDownloadFeed;

/* Finds the missing layers by their ChainIDs, for a caller that fetches them first. 'ret' has as
 * many members as the image has layers. */
int unpack_find_missing(const CatalogImage *image, const Store *store, bool *ret);

/* 0; or -errno with a message, in which case nothing was added to the store. 'feed' may be NULL. */
int unpack_image(const CatalogImage *image, const ImageProvider *source,
                 const LayerDownloadFeed *feed, Store *store, char *const *names, Error *reterr);
