/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The part of the image store that a pull may see: the images that its pod may use without their
 * registry (common/image-access.h), and those that the registry has given to it. Nothing else in
 * the store, neither layers, blobs, documents nor interrupted downloads of others, becomes part of
 * the pulled image or decides what is fetched: otherwise an image made for it, or a delta, would
 * reveal the content of others' private images. */

#include "agent/image-helper/pull/digest.h"
#include "common/json-text.h"

typedef struct StoreView StoreView;

/* The pull that sees it. All is borrowed. */
typedef struct StoreViewer {
        const char *registry, *repository; /* that it pulls from */
        const json_t *hashes;              /* of its pull Secrets; NULL: none */
        const json_t *access; /* as the agent's image_access_to_json() has it; NULL: only images
                                 that were not pulled are open to all */
} StoreViewer;

/* Reads the records of the images in the store 'store_fd'. Images that appear later are not seen.
 * 0, -ENOMEM, or another -errno if the store cannot be read; an image with any damage is not
 * seen. */
int store_view_new(int store_fd, const StoreViewer *viewer, StoreView **ret);
StoreView *store_view_free(StoreView *view);
DEFINE_CLEANUP(StoreView *, store_view_free)

/* Whether an image that is seen has the layer, by its ChainID; the manifest, configuration or
 * packed layer, by its digest. */
bool store_view_has_layer(const StoreView *view, const char *chain_id);
bool store_view_has_blob(const StoreView *view, const char *digest);

/* Whether the image is seen, or may be requested from the registry. */
bool store_view_may_show_image(const StoreView *view, const char *digest);

/* The registry has given the manifest with that digest to the pull, from its repository: an image
 * that was pulled from there before is seen from now on. */
void store_view_admit(StoreView *view, const char *digest);

/* The digest of an image that may be requested from the registry, to see it: it was pulled from the
 * repository of the pull, is not seen, and has this layer or this blob (NULL: any). It is found
 * once. Borrowed, or NULL. */
const char *store_view_take_candidate(StoreView *view, const char *chain_id, const char *blob);

/* The name of the data that only pulls with the same Secrets from the same repository share: 16 hex
 * digits. */
const char *store_view_domain(const StoreView *view);
