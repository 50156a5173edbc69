/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Transfers the content of a manifest source: over HTTP, or from the directory of an index on a
 * disk ("file:"), such as a USB stick. */

#include "agent/image-helper/source/source-fetcher.h"
#include "agent/image-helper/source/source-settings.h"

/* The requests to a source during one run. */
typedef struct SourceTransfer {
        const SourceSettings *settings;
        SourceFetcher fetcher;
        int stick_fd; /* the directory of a "file:" URL; otherwise negative */
        unsigned n_requests;
        uint64_t received;
} SourceTransfer;

#define SOURCE_TRANSFER_NULL ((SourceTransfer){ .fetcher = { -EBADF }, .stick_fd = -EBADF })

/* Starts the fetcher or opens the directory; to be called before privileges are dropped.
 * -ENOMEDIUM: there is no stick. 'close_in_fetcher' lists descriptors that a fetcher must not have,
 * terminated by a negative number. 0, or -errno with a message. */
int source_transfer_start(const SourceSettings *settings, const int *close_in_fetcher,
                          SourceTransfer *ret, Error *reterr);

/* Sets a function that is called about twice a second during downloads. */
void source_transfer_on_tick(SourceTransfer *transfer, void (*on_tick)(void *userdata),
                             void *userdata);
void source_transfer_done(SourceTransfer *transfer);

typedef struct SourceBody {
        char *data; /* with an additional NUL */
        size_t length;
        bool is_unchanged; /* there is no data in this case */
        char etag[TRANSPORT_ETAG_SIZE];
} SourceBody;

void source_body_done(SourceBody *body);

/* Fetches a document of at most 'size_max' bytes: the one at the URL, or at the URL with a suffix
 * on its path. 'known' is the state of the existing content: its ETag is sent if it belongs to the
 * same URL; NULL: none. 0; -EAGAIN or another -errno with a message. */
int source_transfer_get(SourceTransfer *transfer, const char *suffix, const json_t *known,
                        uint64_t size_max, SourceBody *ret, Error *reterr);

/* Downloads a file next to the one at the URL, of at most 'size' bytes; 'fd' may already contain
 * the first ones. An interrupted transfer is resumed as long as each attempt makes progress. The
 * data is not verified. Returns the same errors. */
int source_transfer_download(SourceTransfer *transfer, const char *sibling, uint64_t size, int fd,
                             Error *reterr);

/* A URL with a suffix, or of a file next to it: with the suffix ".sig",
 * "https://example.com/a/index.json?x" becomes "https://example.com/a/index.json.sig?x"; its
 * sibling "b" is "https://example.com/a/b?x". One of the two arguments is NULL. The caller frees
 * it; NULL: out of memory. */
char *source_reference(const char *url, const char *suffix, const char *sibling);
