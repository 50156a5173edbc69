/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Has the fetchers fetch whole documents from a registry into memory. The content is untrusted, and
 * its digest is not verified here. */

#include "agent/image-helper/process/fetcher-pool.h"

typedef struct FetchedDocument {
        char *text; /* with an additional NUL */
        size_t length;
        char media_type[128];
        int secret; /* index of the Secret whose credentials were needed; -1: none, or the node's */
} FetchedDocument;

void fetched_document_done(FetchedDocument *document);

/* 0, or -EBADMSG with a message if its digest differs. */
int fetched_document_check(const FetchedDocument *document, const char *digest, Error *reterr);

/* Fetches a document of at most 'max_bytes'; no layer may be in transit. '*endpoint' is the
 * endpoint to try first, and afterwards the one that had the document. 0; or an error of
 * registry_client_get() with its message; or an error of fetcher_pool_wait(), after which the reply
 * may still arrive and is ignored. */
int document_fetch(FetcherPool *fetchers, RegistryObjectKind kind, const char *name,
                   size_t max_bytes, uint32_t *endpoint, FetchedDocument *ret, Error *reterr);

/* Waits for the next reply while all fetchers are running. 0 or -errno with a message. */
int fetcher_pool_wait(FetcherPool *fetchers, FetchReply *ret, Error *reterr);

/* -ENOMEM or -EIO with a message if one of them has died. */
int fetcher_pool_check(FetcherPool *fetchers, Error *reterr);

/* The error of a reply, with its message. */
int fetch_reply_to_error(const FetchReply *reply, Error *reterr);
