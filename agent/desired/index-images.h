/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pulls the images that the pods of an index need on this node, before the index is used: one after
 * the other, from the source. */

#include "agent/image/image-store.h"
#include "agent/model/node.h"

typedef struct IndexImages IndexImages;

/* Everything is borrowed and outlives it. */
typedef struct IndexImagesConfig {
        sd_event *event;
        ImageStore *store;
        const NodeLabelsTaints *node;
        /* Whether the source may be contacted now; false with a message. */
        bool (*may_continue)(Error *reterr, void *userdata);
        /* All images are present, or an error says why one is not; -ECANCELED if may_continue()
         * returned false. */
        void (*on_done)(int r, const Error *error, void *userdata);
        void *userdata;
} IndexImagesConfig;

int index_images_new(const IndexImagesConfig *config, IndexImages **ret);
IndexImages *index_images_free(IndexImages *images);
DEFINE_CLEANUP(IndexImages *, index_images_free)

/* Starts to pull the images that the manifests of the directory need and that their index names
 * ('named'). Both arguments are borrowed until the operation ends. 1: all images are present; 0:
 * the others are being pulled, and on_done() follows; or -errno with a message. An earlier
 * operation is cancelled. */
int index_images_begin(IndexImages *images, int manifests_fd, const SourceImages *named,
                       Error *reterr);

/* "1 of 3 images are here, 12.0 of 80.3 MiB, 1.5 MiB/s": the progress of the pulls. The caller
 * frees it; NULL: nothing is being pulled. */
char *index_images_progress(const IndexImages *images);
