/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whole documents of a source of manifests, in memory. */

#include "agent/image-helper/source-fetcher.h"
#include "agent/image-helper/source-store.h"

/* What was asked of a source in one run. */
typedef struct SourceTransfer {
        const SourceSettings *settings;
        SourceFetcher fetcher;
        unsigned n_requests;
        uint64_t received;
} SourceTransfer;

#define SOURCE_TRANSFER_NULL ((SourceTransfer){ .fetcher = { -EBADF } })

/* Starts what is needed, before privileges are dropped. 0, or -errno with a message. */
int source_transfer_start(const SourceSettings *settings, const SourceStore *store,
                          SourceTransfer *ret, Error *reterr);
void source_transfer_done(SourceTransfer *transfer);

typedef struct SourceBody {
        char *data; /* with an additional NUL */
        size_t length;
        bool is_unchanged; /* then there is no data */
        char etag[TRANSPORT_ETAG_SIZE];
} SourceBody;

void source_body_done(SourceBody *body);

/* A document of at most 'size_max' bytes. 'known' is the state of what is there: its ETag is sent
 * if it is of the same URL; NULL: none. 0; -EAGAIN or another -errno with a message. */
int source_transfer_get(SourceTransfer *transfer, const char *url, const json_t *known,
                        uint64_t size_max, SourceBody *ret, Error *reterr);
