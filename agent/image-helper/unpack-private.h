/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What unpack.c and layers.c share. */

#include "agent/image-helper/layer-view.h"
#include "agent/image-helper/unpack.h"

struct ImageUnpack {
        const CatalogImage *image;
        const ImageProvider *source;
        const LayerDownloadFeed *feed; /* NULL: all is here */
        Store *store;
        size_t n;
        char (*chain_ids)[DIGEST_SIZE]; /* lowest first */
        uint64_t *sizes;                /* unpacked; 0 where the layer was not read */
        const char **made;              /* those that were missing and lie in the work directory */
        struct UnpackBudget *allowance; /* of all layers that are being made */
        char manifest_digest[DIGEST_SIZE]; /* of the one that readers are led to */
        uint64_t manifest_size;
        int *stack; /* open layers, the topmost first, filled from the end */
};

typedef struct ImageUnpack ImageUnpack;

/* unpack.c: makes room for the layers of 'image'. 0 or -ENOMEM; to be ended in any case. */
int image_unpack_init(ImageUnpack *unpack);
void image_unpack_done(ImageUnpack *unpack);

/* A place in the work directory for a layer that is to be made. */
int image_unpack_place_layer(ImageUnpack *unpack, size_t i, Error *reterr);

/* layers.c: unpacks the layers that are missing into the work directory, each in a process of its
 * own, several at once. 0, or -errno with the sentence of the first that failed, and then none runs
 * any more. */
int unpack_missing_layers(ImageUnpack *unpack, Error *reterr);

/* Reads one layer to its end, unpacks it into 'fd' unless that is negative, and verifies it. */
int read_and_verify_layer(const ImageUnpack *unpack, size_t i, int fd, LayerViewGate *gate,
                          uint64_t *ret_size, Error *reterr);

/* unpack-documents.c: stages the image's manifest and configuration; gives it its names. */
int stage_image_documents(ImageUnpack *unpack, Error *reterr);
int tag_unpacked_image(const ImageUnpack *unpack, char *const *names, Error *reterr);
