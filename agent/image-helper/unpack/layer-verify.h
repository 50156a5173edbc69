/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Verifies the unpacked layers in the store: each layer is unpacked again next to the stored one,
 * from the blob or the archive, and the two are compared. No additional data has to be stored for
 * this, and damage can be repaired at once. */

#include "agent/image-helper/pull/image-manifest.h"
#include "agent/image-helper/store/store.h"

typedef struct LayerVerification {
        bool repairs;
        char **seen;     /* ChainIDs that have been checked */
        unsigned faults; /* number of printed faults, one per line */
} LayerVerification;

/* Checks the layers of an image that has a record in the store; missing images are skipped. 0, or
 * -errno with a message if the provider fails. */
int verify_image_layers(LayerVerification *check, const CatalogImage *image,
                        const ImageProvider *source, Store *store, Error *reterr);

/* Checks all images whose layer blobs are in the store. 0 or -errno. */
int verify_store_layers(LayerVerification *check, Store *store, Error *reterr);

void layer_verification_done(LayerVerification *check);
