/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether the layers in the store are still what they were unpacked from: each is unpacked once
 * more beside it, from the blob or the archive, and the two are compared. Nothing need be
 * remembered for it, and what is damaged can be put right at once. */

#include "agent/image-helper/image-manifest.h"
#include "agent/image-helper/store.h"

typedef struct LayerVerification {
        bool repairs;
        char **seen;     /* ChainIDs that have been looked at */
        unsigned faults; /* that were printed, one line each */
} LayerVerification;

/* The layers of an image that the store has by its record; of others nothing is looked at. 0, or
 * -errno with the sentence where the source fails. */
int verify_image_layers(LayerVerification *check, const CatalogImage *image,
                        const ImageProvider *source, Store *store, Error *reterr);

/* All images whose layers' blobs are in the store. 0 or -errno. */
int verify_store_layers(LayerVerification *check, Store *store, Error *reterr);

void layer_verification_done(LayerVerification *check);
