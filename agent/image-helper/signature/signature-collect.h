/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds the signatures of an image where cosign stores them: in an image with the tag
 * "sha256-<hex>.sig", and in manifests that refer to the image, which are listed by the referrers
 * API of the OCI distribution specification or by an index with the tag "sha256-<hex>"; in an OCI
 * layout, in the same documents next to the image. */

#include "agent/image-helper/archive/catalog.h"
#include "agent/image-helper/process/fetcher-pool.h"
#include "agent/image-helper/signature/sigstore-signature.h"

#include <jansson.h>

/* Collects them from a registry. 'digests' are those of the image and of the index that led to it,
 * terminated by NULL. Unreadable documents are skipped, and the first reason is in
 * 'ret_unreadable'. 0 or -ENOMEM. */
int signatures_collect_fetched(FetcherPool *fetchers, uint32_t endpoint, const char *const *digests,
                               SignatureSet *set, Error *ret_unreadable);

/* Collects them from an OCI layout in an archive. Otherwise the same. */
int signatures_collect_archived(const ImageArchive *archive, const char *const *digests,
                                SignatureSet *set, Error *ret_unreadable);

/* Whether a manifest contains signatures, and thus is not an image. */
bool manifest_has_signatures(const json_t *manifest);
