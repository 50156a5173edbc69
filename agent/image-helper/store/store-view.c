/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/store/store-view.h"

#include "agent/image-helper/pull/document.h"
#include "common/array.h"
#include "common/checksummed.h"
#include "common/file.h"
#include "common/image-access.h"
#include "common/image-reference.h"
#include "common/json-text.h"
#include "common/text.h"

#include <fcntl.h>

enum {
        RECORD_BYTES_MAX = 2 * 1024 * 1024,
        VERIFIED_BYTES_MAX = 64 * 1024,
        DOMAIN_LENGTH = 16,
        PATH_SIZE = 96
};

#define RECORD_SUFFIX     ".json"
#define ANNOTATION_NAME   "org.opencontainers.image.ref.name"
#define ANNOTATION_DIGEST "mainstay.image.digest"

/* An image with a record, and thus with all of its layers. */
typedef struct ViewedImage {
        char digest[DIGEST_SIZE];
        json_t *layers; /* {"<hex of a ChainID>": true, …} */
        json_t *blobs;  /* {"<digest>": true, …} */
        bool is_visible;
        bool is_candidate; /* it was pulled from the repository of the pull */
} ViewedImage;

struct StoreView {
        ViewedImage *images;
        size_t n;
        char domain[DOMAIN_LENGTH + 1];
};

/* The state while a view is created. */
typedef struct ViewReader {
        int store_fd;
        StoreView *view;
        ImageAccessRules rules;
        const json_t *hashes;
        const json_t *archived;
        char *repository; /* including the registry */
        json_t *index;    /* index.json; NULL: there is none */
} ViewReader;

static void viewed_image_done(ViewedImage *image) {
        json_decref(image->layers);
        json_decref(image->blobs);
        *image = (ViewedImage){ 0 };
}

static bool set_has(const json_t *set, const char *key) {
        return json_object_get(set, key) != NULL;
}

static int set_add(json_t *set, const char *key) {
        return json_object_set_new(set, key, json_true()) < 0 ? -ENOMEM : 0;
}

/* ---- contents of an image ---- */

static int read_viewed_layers(int store_fd, const char *record, json_t *ret_layers) {
        cleanup_free char *text = NULL, *path = path_join("records", record);
        cleanup_json json_t *json = NULL;
        const json_t *layer;
        size_t i;
        int r;

        if (!path)
                return -ENOMEM;
        r = checksummed_read_at(store_fd, path, RECORD_BYTES_MAX, &text);
        if (r >= 0)
                r = document_parse(text, strlen(text), &json, NULL);
        if (r < 0)
                return r;
        json_array_foreach(json_object_get(json, "layers"), i, layer) {
                r = json_is_string(layer) ? set_add(ret_layers, json_string_value(layer))
                                          : -EBADMSG;
                if (r < 0)
                        return r;
        }
        return 0;
}

static int add_blob(json_t *blobs, const json_t *descriptor) {
        const char *digest = json_text(descriptor, "digest");

        return digest && digest_is_valid(digest) ? set_add(blobs, digest) : 0;
}

/* The manifest and the documents that it names, as far as they are in the store: an image without
 * names loses its blobs before its layers. */
static int add_manifest_blobs(int store_fd, const char *digest, json_t *blobs) {
        cleanup_json json_t *manifest = NULL;
        cleanup_free char *text = NULL;
        char path[PATH_SIZE], actual[DIGEST_SIZE];
        const json_t *layer;
        size_t length, i;
        int r = set_add(blobs, digest);

        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), "blobs/sha256/%.64s", digest_hex(digest));
        r = read_file_at(store_fd, path, MANIFEST_SIZE_MAX, &text, &length);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        digest_of(text, length, actual);
        r = streq(actual, digest) ? document_parse(text, length, &manifest, NULL) : 0;
        if (r < 0 || !manifest)
                return r == -ENOMEM ? r : 0;
        r = add_blob(blobs, json_object_get(manifest, "config"));
        json_array_foreach(json_object_get(manifest, "layers"), i, layer)
                if (r >= 0)
                        r = add_blob(blobs, layer);
        return r;
}

static bool is_index_entry_of(const json_t *item, const char *digest) {
        const char *own = json_text(item, "annotations", ANNOTATION_DIGEST);

        return own && streq(own, digest);
}

static int read_image_blobs(const ViewReader *reader, ViewedImage *image) {
        const json_t *item;
        size_t i;
        int r = add_manifest_blobs(reader->store_fd, image->digest, image->blobs);

        json_array_foreach(json_object_get(reader->index, "manifests"), i, item) {
                const char *digest = json_text(item, "digest");

                if (r >= 0 && is_index_entry_of(item, image->digest) && digest &&
                    digest_is_valid(digest))
                        r = add_manifest_blobs(reader->store_fd, digest, image->blobs);
        }
        return r;
}

/* ---- visibility ---- */

static bool is_archived(const ViewReader *reader, const char *digest) {
        const json_t *item;
        size_t i;

        json_array_foreach(reader->archived, i, item)
                if (streq_ptr(json_string_value(item), digest))
                        return true;
        return false;
}

static bool is_allowlisted(const ViewReader *reader, const char *name) {
        cleanup_free char *repository = NULL;

        return image_reference_repository(name, &repository, NULL) >= 0 &&
               image_access_is_allowlisted(&reader->rules, repository);
}

static bool has_allowlisted_name(const ViewReader *reader, const char *digest) {
        const json_t *item;
        size_t i;

        json_array_foreach(json_object_get(reader->index, "manifests"), i, item) {
                const char *name = json_text(item, "annotations", ANNOTATION_NAME);

                if (name && is_index_entry_of(item, digest) && is_allowlisted(reader, name))
                        return true;
        }
        return false;
}

/* Checks access under one of the names that the image has, or with which it was pulled. */
static bool is_access_open(const ViewReader *reader, const char *digest, const json_t *access) {
        const char *repository;
        json_t *entry;

        if (reader->rules.opens_all ||
            (reader->rules.opens_preloaded && (!access || is_archived(reader, digest))) ||
            has_allowlisted_name(reader, digest))
                return true;
        json_object_foreach((json_t *) (uintptr_t) access, repository, entry)
                if (is_allowlisted(reader, repository) ||
                    image_access_is_recorded(entry, reader->hashes))
                        return true;
        return false;
}

/* If the record cannot be read, it may contain access restrictions. */
static int find_image_access(const ViewReader *reader, const char *record, ViewedImage *image) {
        cleanup_free char *text = NULL, *path = path_join("verified", record);
        cleanup_json json_t *json = NULL;
        const json_t *access;
        int r;

        if (!path)
                return -ENOMEM;
        r = checksummed_read_at(reader->store_fd, path, VERIFIED_BYTES_MAX, &text);
        if (r >= 0)
                r = document_parse(text, strlen(text), &json, NULL);
        if (r < 0 && r != -ENOENT)
                return r;
        access = json_object_get(json, "access");
        image->is_visible = is_access_open(reader, image->digest, access);
        image->is_candidate = image_access_find(access, reader->repository) != NULL;
        return 0;
}

/* ---- all images ---- */

static int read_viewed_image(const ViewReader *reader, const char *record, ViewedImage *image) {
        int r;

        image->layers = json_object();
        image->blobs = json_object();
        if (!image->layers || !image->blobs)
                return -ENOMEM;
        r = find_image_access(reader, record, image);
        if (r < 0 || (!image->is_visible && !image->is_candidate))
                return r;
        r = read_viewed_layers(reader->store_fd, record, image->layers);
        return r < 0 ? r : read_image_blobs(reader, image);
}

/* 0 also for a file that is not a record, or if the image is not visible. */
static int add_viewed_image(ViewReader *reader, const char *record) {
        cleanup_with(viewed_image_done) ViewedImage image = { 0 };
        StoreView *view = reader->view;
        int r;

        (void) snprintf(image.digest, sizeof(image.digest), DIGEST_PREFIX "%.64s", record);
        if (!digest_is_valid(image.digest) ||
            !streq(record + strlen(digest_hex(image.digest)), RECORD_SUFFIX))
                return 0;
        r = read_viewed_image(reader, record, &image);
        if (r < 0 || (!image.is_visible && !image.is_candidate))
                return r == -ENOMEM ? r : 0;
        if (!ARRAY_RESERVE(view->images, view->n, 1))
                return -ENOMEM;
        view->images[view->n++] = image;
        image = (ViewedImage){ 0 };
        return 0;
}

static int read_view(ViewReader *reader) {
        int fd = openat(reader->store_fd, "records", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;
        cleanup_closedir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        if (!dir) {
                r = -errno;
                close_fd(fd);
                return r;
        }
        while ((r = read_directory_entry(dir, &entry)) > 0) {
                r = add_viewed_image(reader, entry->d_name);
                if (r < 0)
                        return r;
        }
        return r;
}

/* If the index is damaged, there are no names. */
static int read_index(ViewReader *reader) {
        cleanup_free char *text = NULL;
        size_t length;
        int r = read_file_at(reader->store_fd, "index.json", MANIFEST_SIZE_MAX, &text, &length);

        if (r >= 0)
                r = document_parse(text, length, &reader->index, NULL);
        return r == -ENOMEM ? r : 0;
}

static int name_domain(ViewReader *reader) {
        cleanup_json json_t *domain =
                json_pack("[s, O*]", reader->repository, (json_t *) (uintptr_t) reader->hashes);
        cleanup_free char *text = domain ? json_to_text(domain, JSON_COMPACT) : NULL;
        char hash[SHA256_HEX_SIZE];

        if (!text)
                return -ENOMEM;
        sha256_hex(text, strlen(text), hash);
        memcpy(reader->view->domain, hash, DOMAIN_LENGTH);
        return 0;
}

static void view_reader_done(ViewReader *reader) {
        store_view_free(reader->view);
        free(reader->repository);
        json_decref(reader->index);
}

int store_view_new(int store_fd, const StoreViewer *viewer, StoreView **ret) {
        const json_t *access = viewer->access;
        cleanup_with(view_reader_done) ViewReader reader = {
                .store_fd = store_fd,
                .view = calloc(1, sizeof(*reader.view)),
                .rules = { .opens_all = json_is_true(json_object_get(access, "opensAll")),
                           .opens_preloaded = !access || json_is_true(json_object_get(
                                                                 access, "opensPreloaded")),
                           .allowlist = json_object_get(access, "allowlist") },
                .hashes = viewer->hashes,
                .archived = json_object_get(access, "archived"),
        };
        int r;

        reader.repository = text_format("%s/%s", viewer->registry, viewer->repository);
        if (!reader.view || !reader.repository)
                return -ENOMEM;
        r = name_domain(&reader);
        if (r < 0)
                return r;
        r = read_index(&reader);
        if (r < 0)
                return r;
        r = read_view(&reader);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(reader.view);
        return 0;
}

StoreView *store_view_free(StoreView *view) {
        if (!view)
                return NULL;
        for (size_t i = 0; i < view->n; i++)
                viewed_image_done(&view->images[i]);
        free(view->images);
        free(view);
        return NULL;
}

/* ---- visible images ---- */

bool store_view_has_layer(const StoreView *view, const char *chain_id) {
        for (size_t i = 0; i < view->n; i++)
                if (view->images[i].is_visible &&
                    set_has(view->images[i].layers, digest_hex(chain_id)))
                        return true;
        return false;
}

bool store_view_has_blob(const StoreView *view, const char *digest) {
        for (size_t i = 0; i < view->n; i++)
                if (view->images[i].is_visible && set_has(view->images[i].blobs, digest))
                        return true;
        return false;
}

bool store_view_may_show_image(const StoreView *view, const char *digest) {
        for (size_t i = 0; i < view->n; i++)
                if (streq(view->images[i].digest, digest))
                        return view->images[i].is_visible || view->images[i].is_candidate;
        return false;
}

void store_view_admit(StoreView *view, const char *digest) {
        for (size_t i = 0; i < view->n; i++)
                if (streq(view->images[i].digest, digest))
                        view->images[i].is_visible = true;
}

const char *store_view_take_candidate(StoreView *view, const char *chain_id, const char *blob) {
        for (size_t i = 0; i < view->n; i++) {
                ViewedImage *image = &view->images[i];

                if (image->is_visible || !image->is_candidate ||
                    (chain_id && !set_has(image->layers, digest_hex(chain_id))) ||
                    (blob && !set_has(image->blobs, blob)))
                        continue;
                image->is_candidate = false;
                return image->digest;
        }
        return NULL;
}

const char *store_view_domain(const StoreView *view) {
        return view->domain;
}
