/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Declarations that pull.c and pull-delta.c share. */

#include "agent/image-helper/process/fetcher-pool.h"
#include "agent/image-helper/pull/image-manifest.h"
#include "agent/image-helper/pull/pull-request.h"

enum {
        PULLED_DOCUMENTS_MAX = 2 * INDEX_DOCUMENTS_MAX + INDEX_DEPTH_MAX,
        STORED_IMAGES_ASKED_MAX = 8
};

/* A manifest or a configuration that was fetched. */
typedef struct PulledDocument {
        char digest[DIGEST_SIZE];
        char *text;
        size_t length;
} PulledDocument;

typedef struct LayerDownload {
        bool is_wanted; /* its layer is missing */
        bool is_requested, is_complete;
        bool is_unpacked; /* and its digest is right */
        uint32_t attempt; /* that requested it */
        StoreBlob file;
        int wakeup_write_fd; /* the fetcher's end of the wake-up pipe */
        int wakeup_read_fd;  /* the unpacker's */
} LayerDownload;

typedef struct RegistryPull {
        const ImageReference *reference;
        Store *store;
        StoreView *view;  /* the part of the store that the pull may see */
        unsigned n_asked; /* images of the store that were requested from the registry */
        FetcherPool fetchers;
        uint32_t endpoint; /* that had the manifest */
        int secret;        /* whose credentials it took */
        PulledDocument documents[PULLED_DOCUMENTS_MAX];
        size_t n_documents;
        CatalogImage image;
        LayerDownload *blobs; /* one for each layer */
        size_t n_blobs;
        size_t n_requested;     /* and not completed */
        uint32_t attempt;       /* replies to requests of an earlier one are ignored */
        bool has_failed_deltas; /* a blob of the delta could not be fetched or applied */
        const PullSettings *settings;
        uint64_t next_tick;
} RegistryPull;

/* pull.c: a line of output for the log of the agent. 'level' is "info" or "warning". */
void pull_print_message(const char *level, const char *text);

/* pull.c: an image of the store that was pulled from the same repository with other credentials,
 * and that has a layer, by its ChainID, or a blob (NULL: any), is seen if the registry sends its
 * manifest to this pull, too. 1: one is; 0; -ENOMEM. */
int pull_ask_for_image_with(RegistryPull *pull, const char *chain_id, const char *blob);

/* pull-delta.c: whether the image can be made from a delta that the registry has. Then the image
 * gets the blobs of the delta that are smaller than the layers. 'missing' contains the layers that
 * are needed. Failures are none: then the layers are pulled. 0 or -ENOMEM. */
int pull_find_delta(RegistryPull *pull, const char *reference, const bool *missing);
