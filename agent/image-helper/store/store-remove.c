/* SPDX-License-Identifier: Apache-2.0 */

/* Mark and sweep: every record marks its layers, every manifest in index.json marks its blobs; the
 * rest is removed. A damaged record marks nothing, because it cannot be used; but if one cannot be
 * read for another reason, or if a directory cannot be listed, nothing is removed. */

#include "agent/image-helper/store/store-remove.h"

#include "agent/image-helper/archive/byte-stream.h"
#include "agent/image-helper/pull/document.h"
#include "agent/image-helper/store/store-private.h"
#include "common/checksummed.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/strv.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
        RECORD_BYTES_MAX = 2 * 1024 * 1024,
        PATH_SIZE = 128
};

#define RECORD_SUFFIX ".json"
#define ANNOTATION    "mainstay.image.digest"

static DIR *open_dir(const Store *store, const char *name) {
        int fd = openat(store->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);

        if (!dir)
                close_fd(fd);
        return dir;
}

static int for_each_store_entry(const Store *store, const char *directory,
                                int (*each)(const Store *store, const char *name, void *userdata),
                                void *userdata) {
        cleanup_closedir DIR *dir = open_dir(store, directory);
        const struct dirent *entry;
        int r;

        if (!dir)
                return -errno;
        while ((r = read_directory_entry(dir, &entry)) > 0) {
                if (entry->d_name[0] != '.')
                        r = each(store, entry->d_name, userdata);
                if (r < 0)
                        return r;
        }
        return r;
}

/* ---- mark ---- */

/* A missing or damaged record marks nothing. */
static bool is_unusable_file(int r) {
        return r == -ENOENT || is_file_damage(r);
}

static int mark_record(const Store *store, const char *name, void *userdata) {
        cleanup_free char *path = path_join("records", name), *text = NULL;
        cleanup_json json_t *record = NULL;
        char ***marks = userdata;
        const json_t *layer;
        size_t i;
        int r;

        if (!path)
                return -ENOMEM;
        r = checksummed_read_at(store->fd, path, RECORD_BYTES_MAX, &text);
        if (r >= 0)
                r = document_parse(text, strlen(text), &record, NULL);
        if (r < 0)
                return is_unusable_file(r) ? 0 : r;
        json_array_foreach(json_object_get(record, "layers"), i, layer)
                if (json_is_string(layer) && strv_append(marks, json_string_value(layer)) < 0)
                        return -ENOMEM;
        return 0;
}

static int mark_digest(char ***marks, const char *digest) {
        return digest && digest_is_valid(digest) ? strv_append(marks, digest_hex(digest)) : 0;
}

/* Marks the manifest itself, and the blobs that it names. */
static int mark_manifest(const Store *store, const char *digest, char ***marks) {
        cleanup_free char *text = NULL;
        cleanup_json json_t *manifest = NULL;
        const json_t *layer;
        size_t length, i;
        int r = mark_digest(marks, digest);

        if (r < 0 || !digest || !digest_is_valid(digest))
                return r;
        r = store_read_blob(store, digest, MANIFEST_SIZE_MAX, &text, &length);
        if (r >= 0)
                r = document_parse(text, length, &manifest, NULL);
        if (r < 0)
                return is_unusable_file(r) ? 0 : r;
        r = mark_digest(marks, json_text(manifest, "config", "digest"));
        if (r < 0)
                return r;
        json_array_foreach(json_object_get(manifest, "layers"), i, layer) {
                r = mark_digest(marks, json_text(layer, "digest"));
                if (r < 0)
                        return r;
        }
        return 0;
}

static int mark_index(const Store *store, const json_t *index, char ***marks) {
        const json_t *item;
        size_t i;
        int r;

        json_array_foreach(json_object_get(index, "manifests"), i, item) {
                const json_t *annotations = json_object_get(item, "annotations");

                r = mark_manifest(store, json_text(item, "digest"), marks);
                if (r < 0)
                        return r;
                r = mark_manifest(store, json_text(annotations, ANNOTATION), marks);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- sweep ---- */

/* A layer is renamed as a whole, so that a part of it is never visible. */
static int sweep_layer(const Store *store, const char *name, void *userdata) {
        char from[PATH_SIZE], to[PATH_SIZE];
        char *const *marks = userdata;

        if (strv_contains(marks, name))
                return 0;
        (void) snprintf(from, sizeof(from), "layers/%.64s", name);
        (void) snprintf(to, sizeof(to), "tmp/%s/%.64s", store->work_name, name);
        FAIL_AT("store.sweep-layer");
        return renameat(store->fd, from, store->fd, to) < 0 && errno != ENOENT ? -errno : 0;
}

static int discard_swept_layer(const Store *store, const char *name, void *userdata) {
        char path[PATH_SIZE];

        (void) snprintf(path, sizeof(path), "tmp/%s/%.64s", store->work_name, name);
        return remove_tree_at(store->fd, path);
}

/* Nothing is removed from a layer before its new name is durable: otherwise it would look complete
 * after a power cut. */
static int sweep_layers(const Store *store, char **marks) {
        char work[PATH_SIZE];
        int r;

        r = for_each_store_entry(store, "layers", sweep_layer, marks);
        if (r < 0)
                return r;
        r = store_sync_directory(store, "layers");
        if (r < 0)
                return r;
        (void) snprintf(work, sizeof(work), "tmp/%s", store->work_name);
        return for_each_store_entry(store, work, discard_swept_layer, NULL);
}

static int sweep_blob(const Store *store, const char *name, void *userdata) {
        char path[PATH_SIZE];

        if (strv_contains(userdata, name))
                return 0;
        (void) snprintf(path, sizeof(path), "blobs/sha256/%.64s", name);
        FAIL_AT("store.sweep-blob");
        return unlink_if_present_at(store->fd, path);
}

static int sweep_partial(const Store *store, const char *name, void *userdata) {
        store_sweep_partial_blob(store, name);
        return 0;
}

/* Removes a file of an image that has no record, because the image was removed or never arrived. */
static int sweep_image_file(const Store *store, const char *directory, const char *name) {
        cleanup_free char *record = path_join("records", name), *path = path_join(directory, name);

        if (!record || !path)
                return -ENOMEM;
        if (faccessat(store->fd, record, F_OK, AT_SYMLINK_NOFOLLOW) >= 0 || errno != ENOENT)
                return 0;
        return unlink_if_present_at(store->fd, path);
}

static int sweep_signatures(const Store *store, const char *name, void *userdata) {
        return sweep_image_file(store, "signatures", name);
}

static int sweep_verified(const Store *store, const char *name, void *userdata) {
        return sweep_image_file(store, "verified", name);
}

static int remove_records(const Store *store, char *const *digests) {
        cleanup_close int fd = openat(store->fd, "records", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        for (; digests && *digests; digests++) {
                char name[PATH_SIZE];

                (void) snprintf(name, sizeof(name), "%.64s" RECORD_SUFFIX, digest_hex(*digests));
                if (unlinkat(fd, name, 0) < 0 && errno != ENOENT)
                        return -errno;
        }
        FAIL_AT("store.records-removed");
        /* The removals are synced before anything to which the files refer is removed. */
        return fsync(fd) < 0 ? -errno : 0;
}

int store_sweep_downloads(const Store *store) {
        return for_each_store_entry(store, "partial", sweep_partial, NULL);
}

static int sweep_unmarked(Store *store, const json_t *index) {
        cleanup_strv char **layers = NULL, **blobs = NULL;
        int r;

        r = for_each_store_entry(store, "records", mark_record, &layers);
        if (r < 0)
                return r;
        r = sweep_layers(store, layers);
        if (r < 0)
                return r;
        r = store_sweep_downloads(store);
        if (r < 0)
                return r;
        if (index) {
                r = mark_index(store, index, &blobs);
                if (r < 0)
                        return r;
                r = for_each_store_entry(store, "blobs/sha256", sweep_blob, blobs);
                if (r < 0)
                        return r;
        }
        r = for_each_store_entry(store, "verified", sweep_verified, NULL);
        if (r < 0)
                return r;
        return for_each_store_entry(store, "signatures", sweep_signatures, NULL);
}

int store_remove_images(Store *store, char *const *digests, Error *reterr) {
        cleanup_json json_t *index = NULL;
        int r = store_work_fd(store, reterr);

        if (r < 0)
                return r;
        r = remove_records(store, digests);
        if (r < 0)
                return error_prefixf(reterr, r, "image store");
        r = store_untag_images(store, digests, &index, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "image store");
        r = sweep_unmarked(store, index);
        return r < 0 ? error_prefixf(reterr, r, "image store") : 0;
}

/* ---- check ---- */

static int verify_stored_blob(const Store *store, const char *name, void *userdata) {
        cleanup_with(byte_stream_freep) ByteStream *stream = NULL;
        char path[PATH_SIZE], digest[DIGEST_SIZE];
        cleanup_close int fd = -EBADF;
        unsigned *faults = userdata;
        struct stat st;
        int r;

        (void) snprintf(path, sizeof(path), "blobs/sha256/%.64s", name);
        fd = openat(store->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT) /* removed since the directory was read */
                return 0;
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        r = byte_stream_new_blob(fd, (uint64_t) st.st_size, -EBADF, &stream);
        if (r >= 0)
                r = byte_stream_drain(stream, NULL);
        if (r == -ENOMEM)
                return r;
        if (r >= 0)
                byte_stream_digest(stream, digest);
        if (r < 0 || !streq(digest_hex(digest), name)) {
                (*faults)++;
                (void) printf("blob sha256:%s is damaged\n", name);
        }
        return 0;
}

static bool is_record_removed(const Store *store, const char *name) {
        cleanup_free char *path = path_join("records", name);

        return path && faccessat(store->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

/* Images may be removed at the same time, first the record and then the layers. */
static int verify_record(const Store *store, const char *name, void *userdata) {
        cleanup_strv char **layers = NULL;
        unsigned *faults = userdata;
        int r = mark_record(store, name, &layers);

        if (r < 0)
                return r;
        if (!layers && is_record_removed(store, name))
                return 0;
        if (!layers) {
                (*faults)++;
                (void) printf("record %s is damaged\n", name);
        }
        strv_foreach(layer, layers) {
                cleanup_free char *path = path_join("layers", *layer);

                if (path && faccessat(store->fd, path, F_OK, AT_SYMLINK_NOFOLLOW) >= 0)
                        continue;
                if (is_record_removed(store, name))
                        return 0;
                (*faults)++;
                (void) printf("layer %s of image sha256:%.64s is missing\n", *layer, name);
        }
        return 0;
}

int store_verify_blobs(Store *store, Error *reterr) {
        unsigned faults = 0;
        int r;

        r = for_each_store_entry(store, "records", verify_record, &faults);
        if (r < 0)
                return error_prefixf(reterr, r, "image store");
        r = for_each_store_entry(store, "blobs/sha256", verify_stored_blob, &faults);
        return r < 0 ? error_prefixf(reterr, r, "image store") : (int) MIN(faults, 10000U);
}
