/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The part of the image store that is visible to a pull: the images that its pod may use without
 * contacting their registry (common/image-access.h), and those for which the registry has returned
 * the manifest. Nothing else in the store (layers, blobs, documents or interrupted downloads of
 * other pulls) becomes part of the pulled image or influences what is fetched; otherwise a
 * specially crafted image, or a delta, could reveal the content of private images of others. */

#include "agent/image-helper/pull/digest.h"
#include "common/json-text.h"

typedef struct StoreView StoreView;

/* The pull for which the view is made. All members are borrowed. */
typedef struct StoreViewer {
        const char *registry, *repository; /* from which it pulls */
        const json_t *hashes;              /* hashes of its pull Secrets; NULL: none */
        const json_t *access; /* from the agent's image_access_to_json(); NULL: only images that
                                 were not pulled are open to all */
} StoreViewer;

/* Reads the records of the images in the store 'store_fd'. Images that appear later are not
 * visible. 0, -ENOMEM, or another -errno if the store cannot be read; damaged images are not
 * visible. */
int store_view_new(int store_fd, const StoreViewer *viewer, StoreView **ret);
StoreView *store_view_free(StoreView *view);
DEFINE_CLEANUP(StoreView *, store_view_free)

/* Whether a visible image has the layer, by ChainID; or the manifest, configuration or compressed
 * layer, by digest. */
bool store_view_has_layer(const StoreView *view, const char *chain_id);
bool store_view_has_blob(const StoreView *view, const char *digest);

/* Whether the image is visible, or may be requested from the registry. */
bool store_view_may_show_image(const StoreView *view, const char *digest);

/* The registry has returned the manifest with that digest to the pull, from its repository: an
 * image that was pulled from there before is visible from now on. */
void store_view_admit(StoreView *view, const char *digest);

/* The digest of an image that may be requested from the registry to make it visible: it was pulled
 * from the pull's repository, is not visible, and has this layer or this blob (NULL: any). Each
 * image is returned once. Borrowed, or NULL. */
const char *store_view_take_candidate(StoreView *view, const char *chain_id, const char *blob);

/* The name for data that is shared only by pulls with the same Secrets from the same repository: 16
 * hex digits. */
const char *store_view_domain(const StoreView *view);
