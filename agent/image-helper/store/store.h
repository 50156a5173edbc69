/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The image store on disk:
 *
 *     oci-layout, index.json, blobs/sha256/   an OCI image layout; the layer blobs of images
 *                                             from archives are in the archives
 *     layers/<ChainID>/                       each layer unpacked, on top of those below it
 *     records/<digest>.json                   data to run an image, with a checksum
 *     signatures/, verified/                  data about images: signature-store.h
 *     partial/<digest>.<domain>               a blob whose download is in progress or was
 *                                             interrupted, for pulls of one domain
 *                                             (store-view.h)
 *     tmp/                                    unfinished work; abandoned when it is unlocked
 *
 * Everything appears under its name by a rename, when it is complete and synced. */

#include "agent/image-helper/pull/digest.h"
#include "agent/image-helper/store/store-view.h"
#include "common/error.h"

#include <jansson.h>
#include <stdint.h>

#define OCI_LAYOUT "{\"imageLayoutVersion\":\"1.0.0\"}"

typedef struct Store Store;

/* Opens the directory, and creates missing parts of it. 0 or -errno with a message. */
int store_open(const char *path, Store **ret, Error *reterr);

/* The directory itself; the directory for unnamed files; and tmp/<random> for named ones, which is
 * locked while this process runs. */
int store_fd(const Store *store);
int store_tmp_fd(Store *store);
int store_work_fd(Store *store, Error *reterr);

/* Whether the store, or a part of it, has been removed since it was opened. */
bool store_is_removed(const Store *store);

/* Removes files that dead processes left in tmp/. */
void store_remove_stale_work(Store *store);

/* From now on, layers and blobs that are not in the view count as missing for all functions that
 * open or read them. The view is borrowed. */
void store_restrict(Store *store, const StoreView *view);

/* Opens an existing layer. A directory descriptor, or -ENOENT. */
int store_open_layer(const Store *store, const char *chain_id);

/* Writes a blob that will be published under its digest, or the checksummed record of an image, to
 * the work directory: they are published together with the layers, so that one sync suffices. */
int store_stage_blob(Store *store, const char *digest, const void *data, size_t length,
                     Error *reterr);
int store_stage_record(Store *store, const char *digest, const char *text, Error *reterr);

/* To be called before anything is published: syncs the file system if there are layers to publish,
 * otherwise only the staged files. chain_ids[i] NULL: no layer. */
int store_sync(const Store *store, const char *const *chain_ids, size_t n, Error *reterr);

/* Publishes the staged blobs, then the complete layers, which are in the work directory as "0",
 * "1", …: renames them, and syncs the renames. An existing target is kept. */
int store_publish(const Store *store, const char *const *chain_ids, size_t n, Error *reterr);

/* Durably publishes the record that was staged last. To be called last: a record implies that
 * everything else exists. */
int store_publish_record(Store *store, Error *reterr);

/* Atomically writes a file with a checksum, and syncs it. 0 or -errno. */
int store_write_record(Store *store, const char *path, const char *text, Error *reterr);

/* The blob of a layer in transit, under a name by which only an attempt in the same domain of the
 * view finds it again. */
typedef struct StoreBlob {
        int fd;
        uint64_t length; /* bytes that are present */
        bool is_whole;   /* the complete blob existed already */
        bool is_private; /* another process fetches the same blob: this file is private */
        size_t number;   /* number of the private file */
} StoreBlob;

typedef struct StoreBlobName {
        const char *digest;
        uint64_t size;
        size_t number;     /* distinguishes the blobs of this process */
        bool is_temporary; /* never published, and never replaced by a published one */
} StoreBlobName;

/* Opens the blob, or its existing part. 0 or -errno. */
int store_open_blob(Store *store, const StoreBlobName *name, StoreBlob *ret, Error *reterr);

/* Publishes a complete and synced blob; or removes its partial download, and a published blob only
 * if its digest is wrong. The caller keeps the descriptor. */
int store_commit_blob(Store *store, const char *digest, const StoreBlob *blob, Error *reterr);
void store_discard_blob(Store *store, const char *digest, const StoreBlob *blob);

/* Removes the part of an unneeded blob that an earlier pull in the same domain left. */
void store_discard_part(const Store *store, const char *digest);

/* Opens a published blob. A descriptor or -errno. */
int store_open_blob_to_read(const Store *store, const char *digest);

/* Reads a small blob. -ENOENT, or -EBADMSG if it is damaged. */
int store_read_blob(const Store *store, const char *digest, size_t max_bytes, char **ret,
                    size_t *ret_length);

/* An entry of index.json. */
typedef struct StoreEntry {
        const char *media_type;
        const char *manifest_digest;
        size_t manifest_size;
        const char *image_digest; /* the image's identity, after which its record is named */
        char *const *names;
} StoreEntry;

/* Gives the image its names in index.json, and takes them from other images. */
int store_tag_image(Store *store, const StoreEntry *entry, Error *reterr);

/* Removes all names from the images with those digests; returns the resulting index.json. */
int store_untag_images(Store *store, char *const *digests, json_t **ret_index, Error *reterr);

/* Removes the work directory with its content; the next use creates a new one. */
void store_discard_work(Store *store);

/* Discards the work directory and closes the store. */
Store *store_free(Store *store);
DEFINE_CLEANUP(Store *, store_free)
