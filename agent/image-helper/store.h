/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The image store on disk:
 *
 *     oci-layout, index.json, blobs/sha256/   an OCI image layout; of images from archives without
 *                                             the layers' blobs, which the archives have
 *     layers/<ChainID>/                       each layer unpacked, atop those below it
 *     records/<digest>.json                   what it takes to run an image, sealed
 *     partial/<digest>                        a blob that is arriving, or whose arrival broke off
 *     tmp/                                    what is not finished; nobody's when it is unlocked
 *
 * Everything appears under its name by a rename, whole and synced. */

#include "agent/image-helper/digest.h"
#include "common/error.h"

#include <jansson.h>
#include <stdint.h>

typedef struct Store Store;

/* Opens the directory, and makes what belongs into it. */
int store_open(const char *path, Store **ret, Error *reterr);

/* The directory itself; and for files that have no name, and for what is made by name:
 * tmp/<random>, locked while we live. */
int store_fd(const Store *store);
int store_tmp_fd(Store *store);
int store_work_fd(Store *store, Error *reterr);

/* Removes what dead predecessors left in tmp/. */
void store_remove_stale_work(Store *store);

/* Opens a layer that is there. A directory descriptor, or -ENOENT. */
int store_open_layer(const Store *store, const char *chain_id);

/* Writes a blob that is to have its place under its digest, or the sealed record of an image, into
 * the work directory: they are published with the layers, so that one sync serves all. */
int store_stage_blob(Store *store, const char *digest, const void *data, size_t length,
                     Error *reterr);
int store_stage_record(Store *store, const char *digest, const char *text, Error *reterr);

/* Takes finished layers, which lie in the work directory as "0", "1", …, to their places, then the
 * blobs that were staged: syncs first (the file system where there are layers, else those files),
 * renames, and has that on the disk. chain_ids[i] NULL: none to take. Whoever was faster is right.
 */
int store_publish(Store *store, const char *const *chain_ids, size_t n, Error *reterr);

/* The record that was staged last has its place. Last of all: who finds a record finds all the
 * rest. */
int store_publish_record(Store *store, Error *reterr);

/* A layer's blob that arrives, under a name that the next try finds again. */
typedef struct StoreBlob {
        int fd;
        uint64_t length; /* that is here */
        bool is_whole;   /* all of it, from before */
        bool is_private; /* somebody else fetches the same one: this one is ours alone */
} StoreBlob;

/* Opens the blob, or what there is of it; 'number' tells it from others of this process. 0 or
 * -errno.
 */
int store_open_blob(Store *store, const char *digest, uint64_t size, size_t number, StoreBlob *ret,
                    Error *reterr);

/* Gives a whole and synced blob its place, or throws away one that is not what it should be. The
 * descriptor stays the caller's. */
int store_commit_blob(Store *store, const char *digest, const StoreBlob *blob, Error *reterr);
void store_discard_blob(Store *store, const char *digest, const StoreBlob *blob);

/* Reads a small blob that is there. -ENOENT, or -EBADMSG for one that is damaged. */
int store_read_blob(const Store *store, const char *digest, size_t max_bytes, char **ret,
                    size_t *ret_length);

/* What index.json says of an image. */
typedef struct StoreEntry {
        const char *media_type;
        const char *manifest_digest;
        size_t manifest_size;
        const char *image_digest; /* what the image goes by, its record's name */
        char *const *names;
} StoreEntry;

/* Gives the image its names in index.json, and takes them from whom had them. */
int store_tag_image(Store *store, const StoreEntry *entry, Error *reterr);

/* Takes all names from the images of those digests; gives index.json as it is then. */
int store_untag_images(Store *store, char *const *digests, json_t **ret_index, Error *reterr);

/* Removes the work directory. */
Store *store_free(Store *store);
DEFINE_CLEANUP(Store *, store_free)
