/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Declarations that unpack.c and layer-workers.c share. */

#include "agent/image-helper/delta/image-delta.h"
#include "agent/image-helper/unpack/unpack.h"
#include "common/layer-view.h"

struct ImageUnpack {
        const CatalogImage *image;
        const ImageProvider *source;
        const LayerDownloadFeed *feed; /* NULL: everything is present */
        Store *store;
        size_t n;
        char (*chain_ids)[DIGEST_SIZE];    /* lowest first */
        uint64_t *sizes;                   /* decompressed sizes; 0 if the layer was not read */
        const char **made;                 /* layers that were missing and are now in the work
                                            * directory */
        struct UnpackBudget *budget;       /* shared by all layers that are being unpacked */
        DeltaBase base;                    /* base of a delta, once a layer needs it */
        char manifest_digest[DIGEST_SIZE]; /* digest of the manifest in index.json */
        uint64_t manifest_size;
        int *stack; /* open layers, topmost first, filled from the end */
};

typedef struct ImageUnpack ImageUnpack;

/* unpack.c: allocates the arrays for the layers of 'image'. 0 or -ENOMEM; must be freed in any
 * case. */
int image_unpack_init(ImageUnpack *unpack);
void image_unpack_done(ImageUnpack *unpack);

/* Creates the directory for a layer to be unpacked in the work directory. */
int image_unpack_place_layer(ImageUnpack *unpack, size_t i, Error *reterr);

/* layer-workers.c: unpacks the missing layers into the work directory, each in a separate process,
 * several in parallel. 0; or -errno with the message of the first one that failed, in which case
 * none is running. */
int unpack_missing_layers(ImageUnpack *unpack, Error *reterr);

/* Reads one layer to its end, unpacks it into 'fd' unless that is negative, and verifies it. */
int read_and_verify_layer(const ImageUnpack *unpack, size_t i, int fd, LayerViewGate *gate,
                          uint64_t *ret_size, Error *reterr);

/* unpack-documents.c: stages the image's manifest and configuration, and sets its names. */
int stage_image_documents(ImageUnpack *unpack, Error *reterr);
int tag_unpacked_image(const ImageUnpack *unpack, char *const *names, Error *reterr);
