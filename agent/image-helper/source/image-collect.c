/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/source/image-collect.h"

#include "agent/image-helper/archive/byte-stream.h"
#include "agent/image-helper/delta/delta-make.h"
#include "agent/image-helper/process/image-confine.h"
#include "agent/image-helper/pull/image-manifest.h"
#include "agent/image-helper/pull/platform.h"
#include "agent/image-helper/registry/document-fetch.h"
#include "common/file.h"
#include "common/image-reference.h"
#include "common/json-text.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/stat.h>

#define ANNOTATION_NAME "org.opencontainers.image.ref.name"

typedef struct ImageCollection {
        Store *store;
        int layout_fd;         /* a directory with an OCI layout; or negative */
        int blob_fd;           /* the last layer that was opened in it */
        ImageArchive *archive; /* or NULL */
        Catalog *catalog;      /* images of the archive */
        FetcherPool *fetchers; /* or NULL */
        uint32_t endpoint;
        CatalogImage own;          /* for a layout or a registry */
        const CatalogImage *image; /* 'own', or an image in the archive */
        ImageProvider source;
} ImageCollection;

static void image_collection_done(ImageCollection *collection) {
        catalog_image_done(&collection->own);
        catalog_free(collection->catalog);
        image_archive_free(collection->archive);
        close_fd(collection->blob_fd);
}

static int read_found_image(ImageCollection *collection, const OciDescriptor *descriptor,
                            Error *reterr) {
        int r;

        memcpy(collection->own.digest, descriptor->digest, DIGEST_SIZE);
        r = media_type_is_index(descriptor->media_type)
                    ? image_manifest_read_index(&collection->source, descriptor, &collection->own,
                                                reterr)
                    : image_manifest_read(&collection->source, descriptor, &collection->own,
                                          reterr);
        if (r > 0)
                return error_setf(reterr, ENOTSUP, "it is not an image of a container");
        collection->image = &collection->own;
        return r;
}

/* ---- an archive ---- */

static bool has_image_name(const CatalogImage *image, const char *reference) {
        for (char *const *name = image->names; name && *name; name++)
                if (image_reference_equals(*name, reference))
                        return true;
        return false;
}

static int find_image_in_archive(ImageCollection *collection, int fd, const char *reference,
                                 Error *reterr) {
        int r = image_archive_open(fd, store_tmp_fd(collection->store), &collection->archive,
                                   reterr);

        if (r >= 0)
                r = catalog_read(collection->archive, NULL, &collection->catalog, reterr);
        if (r < 0)
                return r;
        collection->source = catalog_image_provider(collection->catalog);
        for (size_t i = 0; i < collection->catalog->n_images; i++) {
                const CatalogImage *image = &collection->catalog->images[i];

                if (!has_image_name(image, reference))
                        continue;
                if (image->refusal)
                        return error_setf(reterr, ENOEXEC, "%s", image->refusal);
                if (!image->manifest.member || image->delta)
                        return error_setf(reterr, ENOTSUP,
                                          "the image is in the format of 'docker save', or a "
                                          "delta: use an OCI layout, such as 'skopeo copy … "
                                          "oci-archive:' writes");
                collection->image = collection->catalog->chosen = image;
                return 0;
        }
        return error_setf(reterr, ENOENT, "no image has this name");
}

/* ---- a directory ---- */

static int open_layout_blob(const ImageCollection *collection, const CatalogBlob *blob) {
        return open_beneath(collection->layout_fd, blob->member, O_RDONLY | O_NONBLOCK | O_NOCTTY,
                            0);
}

static int check_document(const CatalogBlob *blob, const char *text, size_t length, Error *reterr) {
        char digest[DIGEST_SIZE];

        digest_of(text, length, digest);
        return streq(digest, blob->digest)
                       ? 0
                       : error_setf(reterr, EBADMSG, "'%s' is damaged: its digest is %s",
                                    blob->digest, digest);
}

static int read_layout_document(void *userdata, const CatalogBlob *blob, size_t max_bytes,
                                char **ret, size_t *ret_length, Error *reterr) {
        const ImageCollection *collection = userdata;
        cleanup_close int fd = open_layout_blob(collection, blob);
        cleanup_free char *text = NULL;
        int r = fd < 0 ? fd : read_stream(fd, max_bytes, &text, ret_length);

        if (r < 0)
                return error_prefixf(reterr, r, "%s", blob->member);
        r = check_document(blob, text, *ret_length, reterr);
        if (r >= 0)
                *ret = TAKE_PTR(text);
        return r;
}

static int open_layout_layer(void *userdata, size_t i, ByteStream **ret, Error *reterr) {
        ImageCollection *collection = userdata;
        const CatalogBlob *layer = &collection->image->layers[i];

        close_fd(collection->blob_fd);
        collection->blob_fd = open_layout_blob(collection, layer);
        if (collection->blob_fd == -ENOENT)
                return error_setf(reterr, ENOENT, "only the unpacked layers are there, not %s",
                                  layer->member);
        return collection->blob_fd < 0
                       ? error_prefixf(reterr, collection->blob_fd, "%s", layer->member)
                       : byte_stream_new_blob(collection->blob_fd, layer->size, -EBADF, ret);
}

static int find_layout_image(ImageCollection *collection, const char *reference, Error *reterr) {
        cleanup_free char *text = NULL;
        cleanup_json json_t *index = NULL;
        const json_t *item;
        size_t length, i;
        int r = read_file_at(collection->layout_fd, "index.json", MANIFEST_SIZE_MAX, &text,
                             &length);

        if (r >= 0)
                r = document_parse(text, length, &index, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "index.json");
        collection->source = (ImageProvider){ .read = read_layout_document,
                                              .open_layer = open_layout_layer,
                                              .userdata = collection };
        json_array_foreach(json_object_get(index, "manifests"), i, item) {
                const char *name = json_text(item, "annotations", ANNOTATION_NAME);
                OciDescriptor descriptor = { 0 };

                if (!name || !image_reference_equals(name, reference))
                        continue;
                r = oci_descriptor_parse(item, &descriptor, reterr);
                return r < 0 ? r : read_found_image(collection, &descriptor, reterr);
        }
        return error_setf(reterr, ENOENT, "no image has this name");
}

/* ---- a registry ---- */

static int read_registry_document(void *userdata, const CatalogBlob *blob, size_t max_bytes,
                                  char **ret, size_t *ret_length, Error *reterr) {
        ImageCollection *collection = userdata;
        bool is_config = blob == &collection->own.config;
        cleanup_with(fetched_document_done) FetchedDocument document = { 0 };
        int r = document_fetch(collection->fetchers, is_config ? REGISTRY_BLOB : REGISTRY_MANIFEST,
                               blob->digest, MIN(max_bytes, (size_t) blob->size),
                               &collection->endpoint, &document, reterr);

        if (r >= 0)
                r = check_document(blob, document.text, document.length, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(document.text);
        *ret_length = document.length;
        return 0;
}

static int find_registry_image(ImageCollection *collection, const ImageReference *reference,
                               Error *reterr) {
        cleanup_with(fetched_document_done) FetchedDocument document = { 0 };
        cleanup_json json_t *json = NULL;
        OciDescriptor descriptor = { 0 };
        const char *own;
        int r = document_fetch(collection->fetchers, REGISTRY_MANIFEST,
                               reference->digest ? reference->digest : reference->tag,
                               MANIFEST_SIZE_MAX, &collection->endpoint, &document, reterr);

        if (r >= 0)
                r = image_manifest_parse(document.text, document.length, NULL, &json, reterr);
        if (r < 0)
                return r;
        digest_of(document.text, document.length, descriptor.digest);
        if (reference->digest && !streq(reference->digest, descriptor.digest))
                return error_setf(reterr, EBADMSG, "the registry sent another image: %s",
                                  descriptor.digest);
        own = json_text(json, "mediaType");
        descriptor.media_type = own ? own : document.media_type;
        descriptor.size = document.length;
        collection->source =
                (ImageProvider){ .read = read_registry_document, .userdata = collection };
        return read_found_image(collection, &descriptor, reterr);
}

static int fetch_registry_layer(const ImageCollection *collection, size_t i, StoreBlob *file,
                                Error *reterr) {
        const CatalogBlob *layer = &collection->image->layers[i];
        FetchRequest request = { .id = fetch_id(0, i),
                                 .kind = REGISTRY_BLOB,
                                 .first = collection->endpoint,
                                 .from = file->length,
                                 .size_max = layer->size };
        FetchReply reply;
        int r;

        (void) snprintf(request.name, sizeof(request.name), "%s", layer->digest);
        r = fetcher_pool_submit(collection->fetchers, &request, file->fd, -EBADF);
        if (r >= 0)
                r = fetcher_pool_wait(collection->fetchers, &reply, reterr);
        if (r < 0)
                return r;
        return reply.r < 0 ? fetch_reply_to_error(&reply, reterr) : 0;
}

/* ---- the copy ---- */

static int fill_layer_blob(ImageCollection *collection, size_t i, StoreBlob *file, Error *reterr) {
        cleanup_with(byte_stream_freep) ByteStream *stream = NULL;
        int r;

        if (collection->fetchers)
                return fetch_registry_layer(collection, i, file, reterr);
        if (ftruncate(file->fd, 0) < 0 || lseek(file->fd, 0, SEEK_SET) < 0)
                return -errno;
        r = collection->source.open_layer(collection->source.userdata, i, &stream, reterr);
        return r < 0 ? r : byte_stream_copy(stream, file->fd, reterr);
}

static int check_layer_blob(const CatalogBlob *layer, int fd, Error *reterr) {
        cleanup_with(byte_stream_freep) ByteStream *stream = NULL;
        char digest[DIGEST_SIZE] = "";
        struct stat st;
        int r = fstat(fd, &st) < 0
                        ? -errno
                        : byte_stream_new_blob(fd, (uint64_t) st.st_size, -EBADF, &stream);

        if (r >= 0)
                r = byte_stream_drain(stream, reterr);
        if (r < 0)
                return r;
        byte_stream_digest(stream, digest);
        if (streq(digest, layer->digest) && (uint64_t) st.st_size == layer->size)
                return 0;
        return error_setf(reterr, EBADMSG, "layer '%s' is damaged: its digest is %s", layer->digest,
                          digest);
}

static int collect_layer(ImageCollection *collection, size_t i, Error *reterr) {
        const CatalogBlob *layer = &collection->image->layers[i];
        StoreBlob file = { 0 };
        int r = store_open_blob(
                collection->store,
                &(StoreBlobName){ .digest = layer->digest, .size = layer->size, .number = i },
                &file, reterr);

        if (r < 0)
                return r;
        if (!file.is_whole)
                r = fill_layer_blob(collection, i, &file, reterr);
        if (r >= 0)
                r = check_layer_blob(layer, file.fd, reterr);
        if (r == -EBADMSG)
                store_discard_blob(collection->store, layer->digest, &file);
        if (r >= 0 && !file.is_whole && fsync(file.fd) < 0)
                r = -errno;
        if (r >= 0)
                r = store_commit_blob(collection->store, layer->digest, &file, reterr);
        close_fd(file.fd);
        return r;
}

static int collect_document(ImageCollection *collection, const CatalogBlob *blob, size_t max_bytes,
                            Error *reterr) {
        cleanup_free char *text = NULL;
        size_t length;
        int r = collection->source.read(collection->source.userdata, blob, max_bytes, &text,
                                        &length, reterr);

        return r < 0 ? r : store_stage_blob(collection->store, blob->digest, text, length, reterr);
}

/* Publishes everything durably; the file that was staged last is published like the record of an
 * image. */
static int publish_staged_blobs(Store *store, Error *reterr) {
        int r = store_sync(store, NULL, 0, reterr);

        if (r >= 0)
                r = store_publish(store, NULL, 0, reterr);
        return r < 0 ? r : store_publish_record(store, reterr);
}

/* The image is stored only under its digest: the index specifies its name. */
static int publish_collected_image(ImageCollection *collection, const char *reference,
                                   Error *reterr) {
        const CatalogImage *image = collection->image;
        cleanup_free char *name = text_format("%.*s@%s", (int) strcspn(reference, "@"), reference,
                                              image->manifest.digest);
        int r = name ? publish_staged_blobs(collection->store, reterr) : -ENOMEM;

        if (r < 0)
                return r;
        return store_tag_image(collection->store,
                               &(StoreEntry){ .media_type = image->manifest.media_type,
                                              .manifest_digest = image->manifest.digest,
                                              .manifest_size = (size_t) image->manifest.size,
                                              .image_digest = image->manifest.digest,
                                              .names = (char *[]){ name, NULL } },
                               reterr);
}

static json_t *blob_to_json(const char *digest, uint64_t size) {
        return json_pack("{s:s, s:I}", "digest", digest, "size", (json_int_t) size);
}

static int print_collected(json_t *entry) {
        cleanup_free char *text = entry ? json_to_text(entry, JSON_COMPACT) : NULL;

        json_decref(entry);
        if (!text)
                return -ENOMEM;
        return puts(text) < 0 || fflush(stdout) != 0 ? -EIO : 0;
}

static int print_collected_image(const CatalogImage *image) {
        json_t *blobs = json_pack("[o]", blob_to_json(image->config.digest, image->config.size));

        for (size_t i = 0; i < image->settings->n_diff_ids; i++)
                if (json_array_append_new(blobs, blob_to_json(image->layers[i].digest,
                                                              image->layers[i].size)) < 0) {
                        json_decref(blobs);
                        return -ENOMEM;
                }
        return print_collected(json_pack("{s:s, s:s, s:s, s:I, s:o}", "platform", platform_name(),
                                         "mediaType", image->manifest.media_type, "digest",
                                         image->manifest.digest, "size",
                                         (json_int_t) image->manifest.size, "blobs", blobs));
}

static int copy_collected_image(ImageCollection *collection, const char *reference, Error *reterr) {
        const CatalogImage *image = collection->image;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < image->settings->n_diff_ids; i++)
                r = collect_layer(collection, i, reterr);
        if (r >= 0)
                r = collect_document(collection, &image->manifest, MANIFEST_SIZE_MAX, reterr);
        if (r >= 0)
                r = collect_document(collection, &image->config, CONFIG_SIZE_MAX, reterr);
        if (r >= 0)
                r = publish_collected_image(collection, reference, reterr);
        return r < 0 ? r : print_collected_image(image);
}

static int collect_from_registry(const char *reference, const PullSettings *settings, Store *store,
                                 Error *reterr) {
        cleanup_with(image_collection_done) ImageCollection collection = { .store = store,
                                                                           .layout_fd = -EBADF,
                                                                           .blob_fd = -EBADF };
        cleanup_with(image_reference_done) ImageReference parsed = { 0 };
        cleanup_with(endpoints_done) Endpoints endpoints = { 0 };
        cleanup_with(fetcher_pool_done) FetcherPool fetchers = { .fd = -EBADF };
        int r = pull_reference_parse(reference, &parsed, reterr);

        if (r >= 0)
                r = endpoints_find(&parsed, settings, &endpoints, reterr);
        if (r >= 0)
                r = fetcher_pool_start(&endpoints, 1,
                                       (int[]){ store_fd(store), store_tmp_fd(store), -EBADF },
                                       &fetchers, reterr);
        if (r >= 0)
                r = confine_parser(false, store_fd(store), reterr);
        if (r < 0)
                return r;
        collection.fetchers = &fetchers;
        r = find_registry_image(&collection, &parsed, reterr);
        return r < 0 ? r : copy_collected_image(&collection, reference, reterr);
}

static int collect_from_layout(const char *reference, int from, Store *store, Error *reterr) {
        cleanup_with(image_collection_done) ImageCollection collection = { .store = store,
                                                                           .layout_fd = from,
                                                                           .blob_fd = -EBADF };
        struct stat st;
        int r = fstat(from, &st) < 0 ? -errno : 0;

        if (r >= 0)
                r = confine_source_reader(store_fd(store), S_ISDIR(st.st_mode) ? from : -EBADF,
                                          reterr);
        if (r < 0)
                return r;
        r = S_ISDIR(st.st_mode) ? find_layout_image(&collection, reference, reterr)
                                : find_image_in_archive(&collection, from, reference, reterr);
        return r < 0 ? r : copy_collected_image(&collection, reference, reterr);
}

int collect_image(const char *reference, int from, const PullSettings *settings, Store *store,
                  Error *reterr) {
        return from < 0 ? collect_from_registry(reference, settings, store, reterr)
                        : collect_from_layout(reference, from, store, reterr);
}

/* ---- deltas ---- */

static int collect_delta_blob(void *userdata, const char *digest, uint64_t size, int fd,
                              Error *reterr) {
        cleanup_with(byte_stream_freep) ByteStream *stream = NULL;
        Store *store = userdata;
        StoreBlob file = { 0 };
        int r = store_open_blob(store, &(StoreBlobName){ .digest = digest, .size = size }, &file,
                                reterr);

        if (r < 0)
                return r;
        if (!file.is_whole) {
                if (ftruncate(file.fd, 0) < 0 || lseek(file.fd, 0, SEEK_SET) < 0)
                        r = -errno;
                if (r >= 0)
                        r = byte_stream_new_file(fd, 0, &stream);
                if (r >= 0)
                        r = byte_stream_copy(stream, file.fd, reterr);
                if (r >= 0)
                        r = store_commit_blob(store, digest, &file, reterr);
        }
        close_fd(file.fd);
        return r;
}

int collect_delta(const char *old, const char *new, Store *store, Error *reterr) {
        DeltaArtifact artifact = { .blobs = json_array() };
        cleanup_free char *text = NULL;
        int r = confine_parser(false, store_fd(store), reterr);

        if (r >= 0)
                r = delta_make_blobs(store, &(DeltaInput){ old, -EBADF },
                                     &(DeltaInput){ new, -EBADF }, collect_delta_blob, store,
                                     &artifact, reterr);
        text = artifact.manifest;
        if (r >= 0) {
                char digest[DIGEST_SIZE];

                digest_of(text, strlen(text), digest);
                r = store_stage_blob(store, digest, text, strlen(text), reterr);
                if (r >= 0)
                        r = publish_staged_blobs(store, reterr);
                if (r >= 0)
                        r = print_collected(json_pack(
                                "{s:s, s:s, s:I, s:O}", "base", artifact.base, "digest", digest,
                                "size", (json_int_t) strlen(text), "blobs", artifact.blobs));
        }
        json_decref(artifact.blobs);
        return r;
}
