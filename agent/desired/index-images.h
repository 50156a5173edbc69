/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Brings the images that the pods of an index would use on this node, before the index is in use:
 * one after the other, from the source. */

#include "agent/image/image-store.h"
#include "agent/model/node.h"

typedef struct IndexImages IndexImages;

/* Everything is borrowed and outlives it. */
typedef struct IndexImagesConfig {
        sd_event *event;
        ImageStore *store;
        const NodeLabelsTaints *node;
        /* Whether the source may be contacted now; if not, with a message. */
        bool (*may_continue)(Error *reterr, void *userdata);
        /* All are here, or why one is not: -ECANCELED if it was not to continue. */
        void (*on_done)(int r, const Error *error, void *userdata);
        void *userdata;
} IndexImagesConfig;

int index_images_new(const IndexImagesConfig *config, IndexImages **ret);
IndexImages *index_images_free(IndexImages *images);
DEFINE_CLEANUP(IndexImages *, index_images_free)

/* For the manifests of the directory, and what their index names, which is borrowed until the end.
 * 1: all that it names is here; 0: the rest is being fetched, and on_done() follows; or -errno with
 * a message. An earlier operation is given up. */
int index_images_begin(IndexImages *images, int manifests_fd, const SourceImages *named,
                       Error *reterr);

/* "1 of 3 images are here, 12.0 of 80.3 MiB, 1.5 MiB/s": what was fetched so far. The caller frees
 * it; NULL: nothing is fetched. */
char *index_images_progress(const IndexImages *images);
