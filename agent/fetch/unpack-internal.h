/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What unpack.c and layers.c share. */

#include "agent/fetch/unpack.h"
#include "agent/fetch/view.h"

struct Unpack {
        const CatalogImage *image;
        const ImageSource *source;
        const LayerFeed *feed; /* NULL: all is here */
        Store *store;
        size_t n;
        char (*chain_ids)[DIGEST_SIZE]; /* lowest first */
        uint64_t *sizes;                /* unpacked; 0 where the layer was not read */
        const char **made;              /* those that were missing and lie in the work directory */
        struct Allowance *allowance;    /* of all layers that are being made */
        char manifest_digest[DIGEST_SIZE]; /* of the one that readers are led to */
        uint64_t manifest_size;
        int *stack; /* open layers, the topmost first, filled from the end */
};

typedef struct Unpack Unpack;

/* unpack.c: makes room for the layers of 'image'. 0 or -ENOMEM; to be ended in any case. */
int unpack_init(Unpack *unpack);
void unpack_done(Unpack *unpack);

/* A place in the work directory for a layer that is to be made. */
int unpack_place_layer(Unpack *unpack, size_t i, Error *reterr);

/* layers.c: unpacks the layers that are missing into the work directory, each in a process of its
 * own, several at once. 0, or -errno with the sentence of the first that failed, and then none runs
 * any more. */
int layers_make(Unpack *unpack, Error *reterr);

/* Reads one layer to its end, unpacks it into 'fd' unless that is negative, and verifies it. */
int layer_read(const Unpack *unpack, size_t i, int fd, ViewGate *gate, uint64_t *ret_size,
               Error *reterr);

/* unpack-documents.c: stages the image's manifest and configuration; gives it its names. */
int documents_stage(Unpack *unpack, Error *reterr);
int documents_name(const Unpack *unpack, char *const *names, Error *reterr);
