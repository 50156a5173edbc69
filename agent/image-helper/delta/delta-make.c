/* SPDX-License-Identifier: Apache-2.0 */

/* The layers of both images are decompressed into unnamed files and mapped. A layer of the new
 * image that the old one also has is omitted; every other layer is compared file by file with all
 * files of the old image, and is included unchanged if that takes fewer bytes. */

#include "agent/image-helper/delta/delta-make.h"

#include "agent/image-helper/archive/tar-write.h"
#include "agent/image-helper/delta/byte-match.h"
#include "agent/image-helper/delta/delta-files.h"
#include "agent/image-helper/delta/image-delta.h"
#include "agent/image-helper/delta/tar-diff-writer.h"
#include "agent/image-helper/delta/tar-patch.h"
#include "agent/image-helper/store/stored-image.h"
#include "common/file.h"
#include "common/json-text.h"

#include <fcntl.h>
#include <sys/mman.h>

#define MANIFEST_TYPE   "application/vnd.oci.image.manifest.v1+json"
#define EMPTY_TYPE      "application/vnd.oci.empty.v1+json"
#define INDEX_TYPE      "application/vnd.oci.image.index.v1+json"
#define ANNOTATION_NAME "org.opencontainers.image.ref.name"

/* One of the two images. */
typedef struct DeltaSide {
        ImageArchive *archive;
        Catalog *catalog;
        StoredImage stored;
        CatalogImage own; /* for an image in the store; an image in an archive belongs to the
                           * catalog */
        const CatalogImage *image;
        ImageProvider source;
        char *name; /* or NULL */
} DeltaSide;

/* A blob of the delta. */
typedef struct DeltaPart {
        int fd; /* an unnamed file; -EBADF: the layer is omitted */
        uint64_t size;
        char digest[DIGEST_SIZE];
        bool is_diff;
} DeltaPart;

typedef struct DeltaMaker {
        Store *store;
        DeltaSide old, new;
        DeltaLayer *layers; /* layers of the old image */
        size_t n_layers;
        DeltaFiles files; /* files of the old image */
        DeltaPart *parts; /* one for each layer of the new image */
        size_t n_parts;
} DeltaMaker;

/* ---- opening the images ---- */

static int open_archived_side(DeltaSide *side, Store *store, int fd, Error *reterr) {
        int r = image_archive_open(fd, store_tmp_fd(store), &side->archive, reterr);

        if (r < 0)
                return r;
        r = catalog_read(side->archive, NULL, &side->catalog, reterr);
        if (r < 0)
                return r;
        for (size_t i = 0; i < side->catalog->n_images; i++) {
                if (side->catalog->images[i].refusal)
                        continue;
                if (side->image)
                        return error_setf(reterr, ENOTSUP, "the archive has several images");
                side->image = &side->catalog->images[i];
        }
        if (!side->image)
                return error_setf(reterr, ENOEXEC, "%s", side->catalog->images[0].refusal);
        if (side->image->delta)
                return error_setf(reterr, ENOTSUP, "the archive is itself a delta");
        side->catalog->chosen = side->image;
        side->source = catalog_image_provider(side->catalog);
        if (!side->image->names)
                return 0;
        side->name = strdup(side->image->names[0]);
        return side->name ? 0 : -ENOMEM;
}

static int open_stored_side(DeltaSide *side, Store *store, const char *name, Error *reterr) {
        cleanup_json json_t *index = NULL;
        OciDescriptor descriptor = { 0 };
        const json_t *item;
        int r = stored_images_read_index(store, &index, reterr);

        if (r < 0)
                return r;
        item = stored_images_find(index, name);
        if (!item)
                return error_setf(reterr, ENOENT, "the image is not in the store");
        side->stored = (StoredImage){ .store = store, .image = &side->own, .fd = -EBADF };
        side->source = stored_image_provider(&side->stored);
        r = oci_descriptor_parse(item, &descriptor, reterr);
        if (r < 0)
                return r;
        memcpy(side->own.digest, descriptor.digest, DIGEST_SIZE);
        r = image_manifest_read(&side->source, &descriptor, &side->own, reterr);
        if (r < 0)
                return r;
        side->image = &side->own;
        if (!stored_image_has_blobs(&side->stored))
                return error_setf(reterr, ENOENT,
                                  "only the unpacked layers are in the store, as the image came "
                                  "from an archive, or as a delta: use the archive");
        side->name = strdup(name);
        return side->name ? 0 : -ENOMEM;
}

static int open_delta_side(DeltaSide *side, Store *store, const DeltaInput *input, Error *reterr) {
        int r = input->fd >= 0 ? open_archived_side(side, store, input->fd, reterr)
                               : open_stored_side(side, store, input->name, reterr);

        return r < 0 ? error_prefixf(reterr, r, "%s", input->name) : 0;
}

static void delta_side_done(DeltaSide *side) {
        if (side->stored.store)
                close_fd(side->stored.fd);
        catalog_image_done(&side->own);
        catalog_free(side->catalog);
        image_archive_free(side->archive);
        free(side->name);
}

/* ---- the layers in memory ---- */

static int open_unnamed(Store *store) {
        int fd = openat(store_tmp_fd(store), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

        return fd < 0 ? -errno : fd;
}

static int map_layer(int fd, uint64_t length, DeltaLayer *ret) {
        void *data;

        ret->length = length;
        if (length == 0)
                return 0;
        data = mmap(NULL, (size_t) length, PROT_READ, MAP_SHARED, fd, 0);
        if (data == MAP_FAILED)
                return -errno;
        ret->data = data;
        return tar_scan(ret->data, length, &ret->scan);
}

static int read_layer(DeltaMaker *maker, const DeltaSide *side, size_t i, DeltaLayer *ret,
                      Error *reterr) {
        cleanup_with(byte_stream_freep) ByteStream *tar = NULL;
        cleanup_close int fd = open_unnamed(maker->store);
        char digest[DIGEST_SIZE];
        ByteStream *packed;
        int r;

        if (fd < 0)
                return fd;
        r = side->source.open_layer(side->source.userdata, i, &packed, reterr);
        if (r < 0)
                return r;
        r = byte_stream_new_unpacked_take(packed, &tar, reterr);
        if (r < 0)
                return r;
        r = byte_stream_copy(tar, fd, reterr);
        if (r < 0)
                return r;
        byte_stream_digest(tar, digest);
        if (!streq(digest, side->image->settings->diff_ids[i]))
                return error_setf(reterr, EBADMSG, "layer '%s' is damaged: its DiffID is %s",
                                  side->image->layers[i].digest, digest);
        return map_layer(fd, byte_stream_length(tar), ret);
}

static void delta_layer_done(DeltaLayer *layer) {
        if (layer->data)
                (void) munmap((void *) (uintptr_t) layer->data, (size_t) layer->length);
        tar_scan_done(&layer->scan);
}

static int read_old_layers(DeltaMaker *maker, Error *reterr) {
        size_t n = maker->old.image->settings->n_diff_ids;

        maker->layers = calloc(MAX(n, (size_t) 1), sizeof(*maker->layers));
        if (!maker->layers)
                return -ENOMEM;
        for (maker->n_layers = 0; maker->n_layers < n; maker->n_layers++) {
                int r = read_layer(maker, &maker->old, maker->n_layers,
                                   &maker->layers[maker->n_layers], reterr);

                if (r < 0)
                        return r;
        }
        return delta_files_collect(maker->layers, maker->n_layers, &maker->files);
}

/* ---- one layer ---- */

typedef struct FileComparison {
        TarDiffWriter *writer;
        const DeltaFile *old;
        const uint8_t *new;
        Error *error;
} FileComparison;

static int write_matched_part(ByteMatchKind kind, uint64_t start, uint64_t size, uint64_t position,
                              void *userdata) {
        const FileComparison *comparison = userdata;
        const DeltaFile *old = comparison->old;
        const uint8_t *new = comparison->new + start;

        switch (kind) {
        case BYTE_MATCH_SAME:
                return tar_diff_writer_copy(comparison->writer, old->name, position, size,
                                            comparison->error);
        case BYTE_MATCH_SIMILAR:
                return tar_diff_writer_add(comparison->writer, old->name, position,
                                           old->data + position, new, size, comparison->error);
        default:
                return tar_diff_writer_data(comparison->writer, new, size, comparison->error);
        }
}

static int write_file(const DeltaMaker *maker, TarDiffWriter *writer, const ScannedEntry *entry,
                      const uint8_t *data, Error *reterr) {
        FileComparison comparison = { .writer = writer, .new = data, .error = reterr };
        char hash[SHA256_HEX_SIZE];

        sha256_hex(data, (size_t) entry->size, hash);
        comparison.old = delta_files_find_equal(&maker->files, hash, entry->size);
        if (comparison.old)
                return tar_diff_writer_copy(writer, comparison.old->name, 0, entry->size, reterr);
        comparison.old = delta_files_find_similar(&maker->files, entry->name, entry->size);
        if (!comparison.old)
                return tar_diff_writer_data(writer, data, entry->size, reterr);
        return byte_match(comparison.old->data, comparison.old->size, data, entry->size,
                          write_matched_part, &comparison);
}

static int write_layer_diff(const DeltaMaker *maker, TarDiffWriter *writer, const DeltaLayer *layer,
                            Error *reterr) {
        uint64_t at = 0;
        int r;

        for (size_t i = 0; i < layer->scan.n; i++) {
                const ScannedEntry *entry = &layer->scan.entries[i];

                if (entry->kind != TAR_SCAN_FILE || entry->size == 0)
                        continue;
                if (entry->offset > at) {
                        r = tar_diff_writer_data(writer, layer->data + at, entry->offset - at,
                                                 reterr);
                        if (r < 0)
                                return r;
                }
                r = write_file(maker, writer, entry, layer->data + entry->offset, reterr);
                if (r < 0)
                        return r;
                at = entry->offset + entry->size;
        }
        if (at < layer->length) {
                r = tar_diff_writer_data(writer, layer->data + at, layer->length - at, reterr);
                if (r < 0)
                        return r;
        }
        return tar_diff_writer_finish(writer, reterr);
}

static int make_layer_diff(DeltaMaker *maker, size_t i, DeltaPart *part, Error *reterr) {
        cleanup_with(tar_diff_writer_freep) TarDiffWriter *writer = NULL;
        cleanup_with(delta_layer_done) DeltaLayer layer = { 0 };
        int r;

        r = read_layer(maker, &maker->new, i, &layer, reterr);
        if (r < 0)
                return r;
        r = part->fd = open_unnamed(maker->store);
        if (r < 0)
                return r;
        r = tar_diff_writer_new(part->fd, &writer, reterr);
        if (r < 0)
                return r;
        r = write_layer_diff(maker, writer, &layer, reterr);
        if (r < 0)
                return r;
        tar_diff_writer_result(writer, part->digest, &part->size);
        part->is_diff = true;
        return 0;
}

static int take_whole_layer(DeltaMaker *maker, size_t i, DeltaPart *part, Error *reterr) {
        const CatalogBlob *blob = &maker->new.image->layers[i];
        cleanup_with(byte_stream_freep) ByteStream *packed = NULL;
        char digest[DIGEST_SIZE];
        int r;

        close_fd(part->fd);
        r = part->fd = open_unnamed(maker->store);
        if (r < 0)
                return r;
        r = maker->new.source.open_layer(maker->new.source.userdata, i, &packed, reterr);
        if (r < 0)
                return r;
        r = byte_stream_copy(packed, part->fd, reterr);
        if (r < 0)
                return r;
        byte_stream_digest(packed, digest);
        if (!streq(digest, blob->digest))
                return error_setf(reterr, EBADMSG, "layer '%s' is damaged: its digest is %s",
                                  blob->digest, digest);
        *part = (DeltaPart){ .fd = part->fd, .size = byte_stream_length(packed) };
        memcpy(part->digest, digest, DIGEST_SIZE);
        return 0;
}

static bool old_image_has_layer(const DeltaMaker *maker, size_t i) {
        const ImageConfig *old = maker->old.image->settings;

        for (size_t k = 0; k < old->n_diff_ids; k++)
                if (streq(old->diff_ids[k], maker->new.image->settings->diff_ids[i]))
                        return true;
        return false;
}

static int make_parts(DeltaMaker *maker, Error *reterr) {
        size_t n = maker->new.image->settings->n_diff_ids;

        maker->parts = calloc(MAX(n, (size_t) 1), sizeof(*maker->parts));
        if (!maker->parts)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                maker->parts[i].fd = -EBADF;
        maker->n_parts = n;
        for (size_t i = 0; i < n; i++) {
                DeltaPart *part = &maker->parts[i];
                int r;

                if (old_image_has_layer(maker, i))
                        continue;
                r = make_layer_diff(maker, i, part, reterr);
                if (r < 0)
                        return r;
                if (part->size < maker->new.image->layers[i].size)
                        continue;
                r = take_whole_layer(maker, i, part, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- the artifact ---- */

static json_t *format_layer(const char *media_type, const char *digest, uint64_t size,
                            const char *content, const char *to) {
        return json_pack("{s:s, s:s, s:I, s:{s:s, s:s*}}", "mediaType", media_type, "digest",
                         digest, "size", (json_int_t) size, "annotations", ANNOTATION_DELTA_CONTENT,
                         content, ANNOTATION_DELTA_TO, to);
}

static json_t *format_layers(const DeltaMaker *maker) {
        const CatalogImage *image = maker->new.image;
        cleanup_json json_t *layers = json_array();
        int r;

        r = json_array_append_new(layers,
                                  format_layer(image->manifest.media_type, image->manifest.digest,
                                               image->manifest.size, "image-manifest", NULL));
        if (r < 0)
                return NULL;
        r = json_array_append_new(layers,
                                  format_layer(image->config.media_type, image->config.digest,
                                               image->config.size, "image-config", NULL));
        if (r < 0)
                return NULL;
        for (size_t i = 0; i < maker->n_parts; i++) {
                const DeltaPart *part = &maker->parts[i];

                if (part->fd < 0)
                        continue;
                r = json_array_append_new(layers,
                                          format_layer(part->is_diff ? MEDIA_TYPE_TAR_DIFF
                                                                     : image->layers[i].media_type,
                                                       part->digest, part->size, "image-layer",
                                                       image->layers[i].digest));
                if (r < 0)
                        return NULL;
        }
        return TAKE_PTR(layers);
}

/* The omitted layers, as a JSON array in a string. */
static char *format_reused(const DeltaMaker *maker, bool by_diff_id) {
        cleanup_json json_t *list = json_array();
        const CatalogImage *image = maker->new.image;

        for (size_t i = 0; i < maker->n_parts; i++)
                if (maker->parts[i].fd < 0 &&
                    json_array_append_new(list,
                                          json_string(by_diff_id ? image->settings->diff_ids[i]
                                                                 : image->layers[i].digest)) < 0)
                        return NULL;
        return list ? json_to_text(list, JSON_COMPACT) : NULL;
}

static int format_artifact(const DeltaMaker *maker, char **ret) {
        const CatalogImage *old = maker->old.image, *new = maker->new.image;
        cleanup_free char *reused = format_reused(maker, false);
        cleanup_free char *diff_ids = format_reused(maker, true);
        char empty[DIGEST_SIZE];
        cleanup_json json_t *artifact = NULL;

        digest_of("{}", 2, empty);
        artifact = json_pack(
                "{s:i, s:s, s:s, s:{s:s, s:s, s:i}, s:o, s:{s:s, s:s, s:I}, s:{s:s, s:s, s:s, s:s, "
                "s:s}}",
                "schemaVersion", 2, "mediaType", MANIFEST_TYPE, "artifactType", ARTIFACT_TYPE_DELTA,
                "config", "mediaType", EMPTY_TYPE, "digest", empty, "size", 2, "layers",
                format_layers(maker), "subject", "mediaType", new->manifest.media_type, "digest",
                new->manifest.digest, "size", (json_int_t) new->manifest.size, "annotations",
                ANNOTATION_DELTA_TARGET, new->manifest.digest, ANNOTATION_DELTA_SOURCE, old->digest,
                ANNOTATION_DELTA_CONFIG, old->config.digest, ANNOTATION_DELTA_REUSED, reused,
                ANNOTATION_DELTA_DIFF_ID, diff_ids);
        *ret = artifact ? json_to_text(artifact, JSON_COMPACT) : NULL;
        return *ret ? 0 : -ENOMEM;
}

static int write_blob_bytes(int fd, const void *data, size_t length) {
        char digest[DIGEST_SIZE], path[96];

        digest_of(data, length, digest);
        (void) snprintf(path, sizeof(path), "blobs/sha256/%s", digest_hex(digest));
        return tar_write_file(fd, path, data, length);
}

static int write_document(const DeltaMaker *maker, const CatalogBlob *blob, size_t max_bytes,
                          int fd, Error *reterr) {
        cleanup_free char *text = NULL;
        size_t length;
        int r = maker->new.source.read(maker->new.source.userdata, blob, max_bytes, &text, &length,
                                       reterr);

        return r < 0 ? r : write_blob_bytes(fd, text, length);
}

static int write_parts(const DeltaMaker *maker, int fd) {
        for (size_t i = 0; i < maker->n_parts; i++) {
                const DeltaPart *part = &maker->parts[i];
                char path[96];
                int r;

                if (part->fd < 0)
                        continue;
                (void) snprintf(path, sizeof(path), "blobs/sha256/%s", digest_hex(part->digest));
                if (lseek(part->fd, 0, SEEK_SET) < 0)
                        return -errno;
                r = tar_write_from(fd, path, part->fd, part->size);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int write_index(const DeltaMaker *maker, const char *artifact, int fd) {
        cleanup_json json_t *annotations = json_object(), *index = NULL;
        cleanup_free char *text = NULL;
        char digest[DIGEST_SIZE];

        digest_of(artifact, strlen(artifact), digest);
        if (maker->new.name &&
            json_object_set_new(annotations, ANNOTATION_NAME, json_string(maker->new.name)) < 0)
                return -ENOMEM;
        index = json_pack("{s:i, s:s, s:[{s:s, s:s, s:s, s:I, s:O}]}", "schemaVersion", 2,
                          "mediaType", INDEX_TYPE, "manifests", "mediaType", MANIFEST_TYPE,
                          "artifactType", ARTIFACT_TYPE_DELTA, "digest", digest, "size",
                          (json_int_t) strlen(artifact), "annotations", annotations);
        text = index ? json_to_text(index, JSON_COMPACT) : NULL;
        return text ? tar_write_file(fd, "index.json", text, strlen(text)) : -ENOMEM;
}

static int write_delta(const DeltaMaker *maker, int fd, Error *reterr) {
        const CatalogImage *image = maker->new.image;
        cleanup_free char *artifact = NULL;
        int r = format_artifact(maker, &artifact);

        if (r < 0)
                return r;
        r = tar_write_file(fd, "oci-layout", OCI_LAYOUT, strlen(OCI_LAYOUT));
        if (r < 0)
                return r;
        r = write_document(maker, &image->manifest, MANIFEST_SIZE_MAX, fd, reterr);
        if (r < 0)
                return r;
        r = write_document(maker, &image->config, CONFIG_SIZE_MAX, fd, reterr);
        if (r < 0)
                return r;
        r = write_parts(maker, fd);
        if (r < 0)
                return r;
        r = write_blob_bytes(fd, "{}", 2);
        if (r < 0)
                return r;
        r = write_blob_bytes(fd, artifact, strlen(artifact));
        if (r < 0)
                return r;
        r = write_index(maker, artifact, fd);
        if (r < 0)
                return r;
        return tar_write_end(fd);
}

static void delta_maker_done(DeltaMaker *maker) {
        delta_files_done(&maker->files);
        for (size_t i = 0; i < maker->n_parts; i++)
                close_fd(maker->parts[i].fd);
        free(maker->parts);
        for (size_t i = 0; maker->layers && i < maker->old.image->settings->n_diff_ids; i++)
                delta_layer_done(&maker->layers[i]);
        free(maker->layers);
        delta_side_done(&maker->old);
        delta_side_done(&maker->new);
}

static int compute_delta_parts(DeltaMaker *maker, Error *reterr) {
        int r = read_old_layers(maker, reterr);

        return r < 0 ? r : make_parts(maker, reterr);
}

static int open_delta_sides(DeltaMaker *maker, const DeltaInput *old, const DeltaInput *new,
                            Error *reterr) {
        int r = open_delta_side(&maker->old, maker->store, old, reterr);

        if (r < 0)
                return r;
        r = open_delta_side(&maker->new, maker->store, new, reterr);
        if (r < 0)
                return r;
        if (!maker->new.image->manifest.member)
                return error_setf(reterr, ENOTSUP,
                                  "%s: an archive of 'docker save' has no manifest: use an OCI "
                                  "archive",
                                  new->name);
        return 0;
}

int delta_make(Store *store, const DeltaInput *old, const DeltaInput *new, int fd, Error *reterr) {
        cleanup_with(delta_maker_done) DeltaMaker maker = { .store = store };
        int r = open_delta_sides(&maker, old, new, reterr);

        if (r < 0)
                return r;
        r = compute_delta_parts(&maker, reterr);
        if (r >= 0)
                r = write_delta(&maker, fd, reterr);
        return r < 0 ? error_prefixf(reterr, r, "the delta cannot be made") : 0;
}

static int take_delta_parts(const DeltaMaker *maker,
                            int (*take)(void *userdata, const char *digest, uint64_t size, int fd,
                                        Error *reterr),
                            void *userdata, DeltaArtifact *artifact, Error *reterr) {
        for (size_t i = 0; i < maker->n_parts; i++) {
                const DeltaPart *part = &maker->parts[i];
                int r;

                if (part->fd < 0)
                        continue;
                if (part->is_diff &&
                    json_array_append_new(artifact->blobs,
                                          json_pack("{s:s, s:I}", "digest", part->digest, "size",
                                                    (json_int_t) part->size)) < 0)
                        return -ENOMEM;
                r = part->is_diff ? take(userdata, part->digest, part->size, part->fd, reterr) : 0;
                if (r < 0)
                        return r;
        }
        return 0;
}

int delta_make_blobs(Store *store, const DeltaInput *old, const DeltaInput *new,
                     int (*take)(void *userdata, const char *digest, uint64_t size, int fd,
                                 Error *reterr),
                     void *userdata, DeltaArtifact *artifact, Error *reterr) {
        cleanup_with(delta_maker_done) DeltaMaker maker = { .store = store };
        int r = open_delta_sides(&maker, old, new, reterr);

        if (r < 0)
                return r;
        r = compute_delta_parts(&maker, reterr);
        if (r >= 0)
                r = take_delta_parts(&maker, take, userdata, artifact, reterr);
        if (r >= 0)
                r = format_artifact(&maker, &artifact->manifest);
        if (r >= 0)
                memcpy(artifact->base, maker.old.image->config.digest, DIGEST_SIZE);
        return r < 0 ? error_prefixf(reterr, r, "the delta cannot be made") : 0;
}
