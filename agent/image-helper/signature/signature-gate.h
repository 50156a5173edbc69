/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Accepts the images that meet the signature policy: when they arrive, and again when the policy
 * has changed. The results are stored (signature-store.h). */

#include "agent/image-helper/archive/catalog.h"
#include "agent/image-helper/process/fetcher-pool.h"
#include "agent/image-helper/pull/pull-request.h"
#include "agent/image-helper/store/store.h"

/* The registry from which an image is pulled. */
typedef struct PulledFrom {
        FetcherPool *fetchers;
        uint32_t endpoint; /* endpoint that had the manifest */
} PulledFrom;

/* For an image from a registry: its documents have been fetched and verified, its layers have not.
 * 0; -EKEYREJECTED with a message; or another -errno. */
int signature_gate_pass_pulled(const PullSettings *settings, const CatalogImage *image,
                               const PulledFrom *from, Store *store, Error *reterr);

/* For an image from an archive. Returns the same. */
int signature_gate_pass_archived(const PullSettings *settings, const CatalogImage *image,
                                 const ImageArchive *archive, Store *store, Error *reterr);

/* For an image that a signed index names, with its signatures in the store; no registry is
 * contacted. Returns the same. */
int signature_gate_pass_vouched(const PullSettings *settings, const CatalogImage *image,
                                Store *store, Error *reterr);

/* For an image in the store, with its stored signatures and, if they are not sufficient, those in
 * the registry of the reference. Drops privileges. Prints the digest like a pull. Returns the same.
 */
int signature_gate_check_stored(const char *reference, const char *digest,
                                const PullSettings *settings, Store *store, Error *reterr);
