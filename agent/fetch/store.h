/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The image store on disk:
 *
 *     oci-layout, index.json, blobs/sha256/   an OCI image layout, without the layers' blobs
 *     layers/<ChainID>/                       each layer unpacked, atop those below it
 *     records/<digest>.json                   what it takes to run an image, sealed
 *     tmp/                                    what is not finished; nobody's when it is unlocked
 *
 * Everything appears under its name by a rename, whole and synced. */

#include "agent/fetch/digest.h"
#include "common/error.h"

typedef struct Store Store;

/* Opens the directory, and makes what belongs into it. */
int store_open(const char *path, Store **ret, Error *reterr);

/* For files that have no name, and for what is made by name: tmp/<random>, locked while we live. */
int store_tmp_fd(Store *store);
int store_work_fd(Store *store, Error *reterr);

/* Removes what dead predecessors left in tmp/. */
void store_sweep(Store *store);

/* Opens a layer that is there. A directory descriptor, or -ENOENT. */
int store_open_layer(const Store *store, const char *chain_id);

/* Takes finished layers, which lie in the work directory as "0", "1", …, to their places: syncs the
 * file system once, then renames. chain_ids[i] NULL: none to take. Whoever was faster is right. */
int store_publish_layers(Store *store, const char *const *chain_ids, size_t n, Error *reterr);

/* Writes a blob under its digest. */
int store_put_blob(Store *store, const char *digest, const void *data, size_t length,
                   Error *reterr);

/* Writes the sealed record of an image. */
int store_put_record(Store *store, const char *digest, const char *text, Error *reterr);

/* What index.json says of an image. */
typedef struct StoreEntry {
        const char *media_type;
        const char *manifest_digest;
        size_t manifest_size;
        const char *image_digest; /* what the image goes by, its record's name */
        char *const *names;
} StoreEntry;

/* Gives the image its names in index.json, and takes them from whom had them. */
int store_name_image(Store *store, const StoreEntry *entry, Error *reterr);

/* Removes the work directory. */
Store *store_free(Store *store);
DEFINE_CLEANUP(Store *, store_free)
