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

/* A fetched manifest or configuration. */
typedef struct PulledDocument {
        char digest[DIGEST_SIZE];
        char *text;
        size_t length;
} PulledDocument;

typedef struct LayerDownload {
        bool is_wanted; /* its layer is missing */
        bool is_requested, is_complete;
        bool is_unpacked; /* and its digest is correct */
        uint32_t attempt; /* attempt that requested it */
        StoreBlob file;
        int wakeup_write_fd; /* write end of the fetcher's wake-up pipe */
        int wakeup_read_fd;  /* the unpacker's */
} LayerDownload;

typedef struct RegistryPull {
        const ImageReference *reference;
        Store *store;
        StoreView *view;  /* the part of the store that is visible to the pull */
        unsigned n_asked; /* number of images in the store that were requested from the registry */
        FetcherPool fetchers;
        uint32_t endpoint; /* endpoint that had the manifest */
        int secret;        /* index of the Secret whose credentials it accepted */
        PulledDocument documents[PULLED_DOCUMENTS_MAX];
        size_t n_documents;
        CatalogImage image;
        LayerDownload *blobs; /* one per layer */
        size_t n_blobs;
        size_t n_requested;     /* number of layers requested, but not complete */
        uint32_t attempt;       /* replies to requests of an earlier attempt are ignored */
        bool has_failed_deltas; /* a blob of the delta could not be fetched or applied */
        const PullSettings *settings;
        uint64_t next_tick;
} RegistryPull;

/* pull.c: prints a line for the agent's log. 'level' is "info" or "warning". */
void pull_print_message(const char *level, const char *text);

/* pull.c: looks for an image in the store that was pulled from the same repository with other
 * credentials, and that has a layer (by ChainID) or a blob (both NULL: any). It becomes visible if
 * the registry also sends its manifest to this pull. 1: there is one; 0; -ENOMEM. */
int pull_ask_for_image_with(RegistryPull *pull, const char *chain_id, const char *blob);

/* pull-delta.c: whether the image can be created with a delta from the registry. If so, the image
 * gets the blobs of the delta that are smaller than the layers. 'missing' marks the layers that are
 * needed. A failure is not an error, because the layers are then pulled instead. 0 or -ENOMEM. */
int pull_find_delta(RegistryPull *pull, const char *reference, const bool *missing);
