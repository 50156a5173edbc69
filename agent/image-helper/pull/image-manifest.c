/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/pull/image-manifest.h"

#include "agent/image-helper/pull/platform.h"
#include "agent/image-helper/signature/signature-collect.h"
#include "common/json-text.h"
#include "common/text.h"

int catalog_blob_init(CatalogBlob *blob, const OciDescriptor *descriptor) {
        memcpy(blob->digest, descriptor->digest, DIGEST_SIZE);
        blob->size = descriptor->size;
        blob->media_type = strdup(descriptor->media_type);
        blob->member = blob->media_type
                               ? text_format("blobs/sha256/%s", digest_hex(descriptor->digest))
                               : NULL;
        if (!blob->member)
                return -ENOMEM;
        return 0;
}

/* A document that can be read both as a manifest and as an index is refused as ambiguous. */
int image_manifest_parse(const char *text, size_t length, const char *media_type, json_t **ret,
                         Error *reterr) {
        cleanup_json json_t *json = NULL;
        const char *own;
        int r;

        r = document_parse(text, length, &json, reterr);
        if (r < 0)
                return r;
        own = json_text(json, "mediaType");
        if (json_integer_value(json_object_get(json, "schemaVersion")) == 1)
                return document_refuse_schema_1(reterr);
        if (json_integer_value(json_object_get(json, "schemaVersion")) != 2)
                return error_setf(reterr, EBADMSG, "its schemaVersion is not 2");
        if (json_object_get(json, "manifests") &&
            (json_object_get(json, "layers") || json_object_get(json, "config")))
                return error_setf(reterr, EBADMSG, "it has both manifests and layers");
        if (own && media_type && !streq(own, media_type))
                return error_setf(reterr, EBADMSG, "its mediaType is '%.128s', not '%s'", own,
                                  media_type);
        *ret = TAKE_PTR(json);
        return 0;
}

int image_manifest_provide(const ImageProvider *source, const CatalogBlob *blob, json_t **ret,
                           Error *reterr) {
        cleanup_free char *text = NULL;
        size_t length = 0;
        int r;

        r = source->read(source->userdata, blob, MANIFEST_SIZE_MAX, &text, &length, reterr);
        if (r < 0)
                return r;
        if (length != blob->size)
                return error_setf(reterr, EBADMSG, "it is damaged: it has %zu bytes", length);
        return image_manifest_parse(text, length, blob->media_type, ret, reterr);
}

static int read_image_config(const ImageProvider *source, CatalogImage *image, Error *reterr) {
        cleanup_free char *text = NULL;
        size_t length = 0;
        int r;

        r = source->read(source->userdata, &image->config, CONFIG_SIZE_MAX, &text, &length, reterr);
        return r < 0 ? r : catalog_take_config(image, text, length, reterr);
}

static int parse_manifest_layers(const ImageProvider *source, CatalogImage *image,
                                 const json_t *manifest, Error *reterr) {
        const json_t *layers = json_object_get(manifest, "layers"), *layer;
        size_t i;

        if (json_array_size(layers) != image->settings->n_diff_ids)
                return error_setf(reterr, EBADMSG,
                                  "the manifest has %zu layers, the configuration %zu",
                                  json_array_size(layers), image->settings->n_diff_ids);
        image->layers = calloc(json_array_size(layers), sizeof(*image->layers));
        if (!image->layers)
                return -ENOMEM;
        json_array_foreach(layers, i, layer) {
                OciDescriptor descriptor = { 0 };
                int r = oci_descriptor_parse(layer, &descriptor, reterr);

                if (r < 0)
                        return r;
                r = catalog_blob_init(&image->layers[i], &descriptor);
                if (r < 0)
                        return r;
                if (media_type_is_encrypted(descriptor.media_type))
                        return error_setf(reterr, ENOTSUP,
                                          "a layer is encrypted, which is not supported");
                if (!media_type_is_layer(descriptor.media_type))
                        return error_setf(reterr, ENOTSUP, "a layer has the unknown type '%.128s'",
                                          descriptor.media_type);
                if (source->check_layer)
                        r = source->check_layer(source->userdata, &image->layers[i], reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

int image_manifest_read(const ImageProvider *source, const OciDescriptor *descriptor,
                        CatalogImage *image, Error *reterr) {
        cleanup_json json_t *manifest = NULL;
        OciDescriptor config = { 0 };
        int r;

        r = catalog_blob_init(&image->manifest, descriptor);
        if (r < 0)
                return r;
        r = image_manifest_provide(source, &image->manifest, &manifest, reterr);
        if (r < 0)
                return r;
        r = oci_descriptor_parse(json_object_get(manifest, "config"), &config, reterr);
        if (r < 0)
                return r;
        if (manifest_has_signatures(manifest))
                return 1;
        if (!media_type_is_config(config.media_type))
                return 1;
        r = catalog_blob_init(&image->config, &config);
        if (r < 0)
                return r;
        r = read_image_config(source, image, reterr);
        if (r < 0)
                return r;
        return parse_manifest_layers(source, image, manifest, reterr);
}

/* Attestations and the like, which are listed next to the images that they describe. */
bool oci_descriptor_is_attestation(const json_t *descriptor) {
        return json_object_get(json_object_get(descriptor, "annotations"),
                               "vnd.docker.reference.type");
}

/* ---- indexes ---- */

/* The search in an index, and in the indexes that it lists. */
typedef struct IndexSearch {
        const ImageProvider *source;
        CatalogImage *image;
        unsigned n_read; /* entries so far */
        Error refusal;   /* why the last one is not for this machine */
} IndexSearch;

/* For an entry without a platform, the document to which it refers decides. */
static bool has_platform(const json_t *entry) {
        return json_text(entry, "platform", "architecture");
}

/* A larger number is better; 0: not for this machine. */
static unsigned score_entry(const json_t *entry) {
        const json_t *platform = json_object_get(entry, "platform");
        const char *os = json_text(platform, "os");

        return platform_match_score(os && os[0] ? os : "linux", json_text(platform, "architecture"),
                                    json_text(platform, "variant"));
}

static bool is_candidate(const json_t *entry) {
        const char *type = json_text(entry, "mediaType");

        return type && (media_type_is_manifest(type) || media_type_is_index(type)) &&
               !oci_descriptor_is_attestation(entry);
}

static int search_index(IndexSearch *search, const OciDescriptor *descriptor, unsigned depth,
                        Error *reterr);

/* Keeps the message for an index without platforms, or with other platforms only. 1, or -ENOMEM. */
static int refuse_platforms(IndexSearch *search, const json_t *manifests) {
        const json_t *item, *other = NULL;
        size_t i;

        json_array_foreach(manifests, i, item)
                if (is_candidate(item))
                        other = json_object_get(item, "platform");
        (void) platform_set_mismatch_error(json_text(other, "os"), json_text(other, "architecture"),
                                           json_text(other, "variant"), &search->refusal);
        return search->refusal.message ? 1 : -ENOMEM;
}

/* Empties the image, except for the members that the caller has set. */
static void reset_image(CatalogImage *image) {
        CatalogImage kept = *image;

        image->names = NULL;
        catalog_image_done(image);
        image->names = kept.names;
        memcpy(image->digest, kept.digest, DIGEST_SIZE);
        memcpy(image->index_digest, kept.index_digest, DIGEST_SIZE);
}

/* 0: the image is read. 1: there is none for this machine; or -errno. */
static int read_candidate(IndexSearch *search, const json_t *entry, unsigned depth, Error *reterr) {
        OciDescriptor descriptor = { 0 };
        int r;

        if (++search->n_read > INDEX_DOCUMENTS_MAX)
                return error_setf(reterr, E2BIG, "it lists more than %d images without a platform",
                                  INDEX_DOCUMENTS_MAX);
        r = oci_descriptor_parse(entry, &descriptor, reterr);
        if (r < 0)
                return r;
        reset_image(search->image);
        if (media_type_is_index(descriptor.media_type))
                return search_index(search, &descriptor, depth + 1, reterr);
        memcpy(search->image->digest, descriptor.digest, DIGEST_SIZE);
        return image_manifest_read(search->source, &descriptor, search->image, reterr);
}

/* The entry with the best platform, whose failure is the image's failure. 1: none. */
static int read_best_entry(IndexSearch *search, const json_t *manifests, unsigned depth,
                           Error *reterr) {
        const json_t *item, *chosen = NULL;
        unsigned best = 0;
        size_t i;

        json_array_foreach(manifests, i, item) {
                unsigned fit = is_candidate(item) && has_platform(item) ? score_entry(item) : 0;

                if (fit > best) {
                        chosen = item;
                        best = fit;
                }
        }
        return chosen ? read_candidate(search, chosen, depth, reterr) : 1;
}

/* The first of the entries without a platform that is for this machine. 1: none. */
static int read_entries_without_platform(IndexSearch *search, const json_t *manifests,
                                         unsigned depth, Error *reterr) {
        const json_t *item;
        size_t i;

        json_array_foreach(manifests, i, item) {
                cleanup_error Error error = ERROR_NULL;
                int r;

                if (!is_candidate(item) || has_platform(item))
                        continue;
                r = read_candidate(search, item, depth, &error);
                if (r == -ENOEXEC) {
                        error_done(&search->refusal);
                        error_move(&search->refusal, &error);
                        continue;
                }
                if (r < 0)
                        error_move(reterr, &error);
                if (r <= 0)
                        return r;
        }
        return 1;
}

static int search_index(IndexSearch *search, const OciDescriptor *descriptor, unsigned depth,
                        Error *reterr) {
        cleanup_with(catalog_blob_done) CatalogBlob blob = { 0 };
        cleanup_json json_t *index = NULL;
        const json_t *manifests;
        int r;

        if (depth > INDEX_DEPTH_MAX)
                return error_setf(reterr, ELOOP, "it has indexes more than %d deep",
                                  INDEX_DEPTH_MAX);
        r = catalog_blob_init(&blob, descriptor);
        if (r < 0)
                return r;
        r = image_manifest_provide(search->source, &blob, &index, reterr);
        if (r < 0)
                return r;
        manifests = json_object_get(index, "manifests");
        if (!json_is_array(manifests) || json_array_size(manifests) > DESCRIPTORS_MAX)
                return error_setf(reterr, EBADMSG, "the list of manifests is missing or too long");
        r = read_best_entry(search, manifests, depth, reterr);
        if (r > 0)
                r = read_entries_without_platform(search, manifests, depth, reterr);
        if (r > 0 && !search->refusal.message)
                r = refuse_platforms(search, manifests);
        return r;
}

int image_manifest_read_index(const ImageProvider *source, const OciDescriptor *descriptor,
                              CatalogImage *image, Error *reterr) {
        IndexSearch search = { .source = source, .image = image, .refusal = ERROR_NULL };
        int r;

        memcpy(image->index_digest, descriptor->digest, DIGEST_SIZE);
        r = search_index(&search, descriptor, 1, reterr);
        if (r > 0) {
                memcpy(image->digest, descriptor->digest, DIGEST_SIZE);
                error_move(reterr, &search.refusal);
                r = -ENOEXEC;
        }
        error_done(&search.refusal);
        return r;
}
