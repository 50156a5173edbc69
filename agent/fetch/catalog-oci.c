/* SPDX-License-Identifier: Apache-2.0 */

/* OCI image layouts: index.json, manifests, and indexes of several platforms below it, one deep. A
 * fault of one image is that image's refusal, and the others stay usable; a fault of index.json is
 * the archive's. */

#include "agent/fetch/catalog.h"
#include "agent/fetch/document.h"
#include "agent/fetch/platform.h"
#include "agent/fetch/sentence.h"
#include "common/strv.h"

enum {
        DESCRIPTORS_MAX = 1024
};

static int blob_init(CatalogBlob *blob, const Descriptor *descriptor) {
        memcpy(blob->digest, descriptor->digest, DIGEST_SIZE);
        blob->size = descriptor->size;
        blob->media_type = strdup(descriptor->media_type);
        if (!blob->media_type ||
            asprintf(&blob->member, "blobs/sha256/%s", digest_hex(descriptor->digest)) < 0)
                return -ENOMEM;
        return 0;
}

/* Two readings of one document are one too many: what is both a manifest and an index is neither.
 */
static int parse_document(const char *text, size_t length, const char *media_type, json_t **ret,
                          Error *reterr) {
        cleanup_json json_t *json = NULL;
        const char *own;
        int r;

        r = document_parse(text, length, &json, reterr);
        if (r < 0)
                return r;
        own = document_string(json, "mediaType");
        if (json_integer_value(json_object_get(json, "schemaVersion")) != 2)
                return error_setf(reterr, EBADMSG, "its schemaVersion is not 2");
        if (json_object_get(json, "manifests") &&
            (json_object_get(json, "layers") || json_object_get(json, "config")))
                return error_setf(reterr, EBADMSG, "it has both manifests and layers");
        if (own && media_type && !streq(own, media_type))
                return error_setf(reterr, EBADMSG, "it calls itself '%.128s', not '%s'", own,
                                  media_type);
        *ret = TAKE_PTR(json);
        return 0;
}

static int read_document(const Source *source, const Descriptor *descriptor, json_t **ret,
                         Error *reterr) {
        cleanup_free char *member = NULL, *text = NULL;
        char digest[DIGEST_SIZE];
        size_t length = 0;
        int r;

        if (asprintf(&member, "blobs/sha256/%s", digest_hex(descriptor->digest)) < 0) {
                member = NULL;
                return -ENOMEM;
        }
        r = source_read(source, member, MANIFEST_SIZE_MAX, &text, &length, reterr);
        if (r < 0)
                return r;
        digest_of(text, length, digest);
        if (length != descriptor->size || !streq(digest, descriptor->digest))
                return error_setf(reterr, EBADMSG, "it is damaged: its digest is %s", digest);
        return parse_document(text, length, descriptor->media_type, ret, reterr);
}

static int parse_layers(const Source *source, CatalogImage *image, const json_t *manifest,
                        Error *reterr) {
        const json_t *layers = json_object_get(manifest, "layers"), *layer;
        size_t i;

        if (json_array_size(layers) != image->settings->n_diff_ids)
                return error_setf(reterr, EBADMSG, "it has %zu layers, its configuration %zu",
                                  json_array_size(layers), image->settings->n_diff_ids);
        image->layers = calloc(json_array_size(layers), sizeof(*image->layers));
        if (!image->layers)
                return -ENOMEM;
        json_array_foreach(layers, i, layer) {
                Descriptor descriptor = { 0 };
                int r = descriptor_parse(layer, &descriptor, reterr);

                if (r >= 0)
                        r = blob_init(&image->layers[i], &descriptor);
                if (r < 0)
                        return r;
                if (!media_type_is_layer(descriptor.media_type))
                        return error_setf(reterr, ENOTSUP,
                                          "it has a layer of the unknown type '%.128s'",
                                          descriptor.media_type);
                if (!source_find(source, image->layers[i].member))
                        return error_setf(reterr, ENOENT, "the archive lacks its layer %s",
                                          descriptor.digest);
        }
        return 0;
}

/* 1: it is something else than an image. */
static int parse_manifest(const Source *source, CatalogImage *image, const Descriptor *descriptor,
                          Error *reterr) {
        cleanup_json json_t *manifest = NULL;
        Descriptor config = { 0 };
        int r;

        r = read_document(source, descriptor, &manifest, reterr);
        if (r >= 0)
                r = blob_init(&image->manifest, descriptor);
        if (r >= 0)
                r = descriptor_parse(json_object_get(manifest, "config"), &config, reterr);
        if (r < 0)
                return r;
        if (!media_type_is_config(config.media_type))
                return 1;
        r = blob_init(&image->config, &config);
        if (r >= 0)
                r = catalog_read_config(source, image, reterr);
        return r < 0 ? r : parse_layers(source, image, manifest, reterr);
}

/* Attestations and such ride along with the images they are about. */
static bool is_companion(const json_t *descriptor) {
        return json_object_get(json_object_get(descriptor, "annotations"),
                               "vnd.docker.reference.type");
}

/* The best manifest for this machine. 0, or -ENOEXEC with what there is instead. */
static int choose_manifest(const json_t *manifests, Descriptor *ret, Error *reterr) {
        const json_t *item, *other = NULL;
        unsigned best = 0;
        size_t i;

        if (!json_is_array(manifests) || json_array_size(manifests) > DESCRIPTORS_MAX)
                return error_setf(reterr, EBADMSG, "it has no manifests, or too many");
        json_array_foreach(manifests, i, item) {
                const json_t *platform = json_object_get(item, "platform");
                const char *type = document_string(item, "mediaType");
                unsigned fit;

                if (!type || !media_type_is_manifest(type) || is_companion(item))
                        continue;
                other = platform;
                fit = platform_fit(document_string(platform, "os"),
                                   document_string(platform, "architecture"),
                                   document_string(platform, "variant"));
                if (fit > best) {
                        int r = descriptor_parse(item, ret, reterr);

                        if (r < 0)
                                return r;
                        best = fit;
                }
        }
        if (best > 0)
                return 0;
        (void) platform_refuse(document_string(other, "os"), document_string(other, "architecture"),
                               document_string(other, "variant"), reterr);
        return -ENOEXEC;
}

static int parse_index(const Source *source, CatalogImage *image, const Descriptor *descriptor,
                       Error *reterr) {
        cleanup_json json_t *index = NULL;
        Descriptor chosen = { 0 };
        int r;

        memcpy(image->index_digest, descriptor->digest, DIGEST_SIZE);
        r = read_document(source, descriptor, &index, reterr);
        if (r >= 0)
                r = choose_manifest(json_object_get(index, "manifests"), &chosen, reterr);
        if (r < 0)
                return r;
        memcpy(image->digest, chosen.digest, DIGEST_SIZE);
        return parse_manifest(source, image, &chosen, reterr);
}

static int read_names(const json_t *descriptor, char ***names) {
        const json_t *annotations = json_object_get(descriptor, "annotations");
        const char *full = document_string(annotations, "io.containerd.image.name");
        const char *name = document_string(annotations, "org.opencontainers.image.ref.name");
        int r = 0;

        if (full)
                r = strv_append(names, full);
        /* Beside a full name this is its tag alone. */
        if (r >= 0 && name && (!full || strpbrk(name, ":/")))
                r = strv_append(names, name);
        return r;
}

static int add_descriptor(Catalog *catalog, const json_t *item, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        CatalogImage image = { 0 };
        Descriptor descriptor = { 0 };
        bool is_index;
        int r;

        r = descriptor_parse(item, &descriptor, reterr);
        if (r < 0)
                return r;
        is_index = media_type_is_index(descriptor.media_type);
        if (is_companion(item) || (!is_index && !media_type_is_manifest(descriptor.media_type)))
                return 0;
        memcpy(image.digest, descriptor.digest, DIGEST_SIZE);
        r = read_names(item, &image.names);
        if (r >= 0)
                r = is_index ? parse_index(catalog->source, &image, &descriptor, &error)
                             : parse_manifest(catalog->source, &image, &descriptor, &error);
        if (r == -ENOMEM || r > 0) {
                catalog_image_done(&image);
                return MIN(r, 0);
        }
        if (r < 0) {
                image.refusal = sentence_format(&error, r);
                if (!image.refusal) {
                        catalog_image_done(&image);
                        return -ENOMEM;
                }
        }
        return catalog_add_take(catalog, &image, reterr);
}

static int check_layout(const Source *source, Error *reterr) {
        cleanup_free char *text = NULL;
        cleanup_json json_t *json = NULL;
        const char *version;
        size_t length;
        int r;

        r = source_read(source, "oci-layout", 4 * KIB, &text, &length, reterr);
        if (r >= 0)
                r = document_parse(text, length, &json, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "oci-layout");
        version = document_string(json, "imageLayoutVersion");
        if (!version || strncmp(version, "1.", 2) != 0)
                return error_setf(reterr, ENOTSUP, "it has the unknown layout version '%.32s'",
                                  strna(version));
        return 0;
}

int catalog_read_oci(Catalog *catalog, Error *reterr) {
        cleanup_free char *text = NULL;
        cleanup_json json_t *json = NULL;
        const json_t *manifests, *item;
        size_t length, i;
        int r;

        r = check_layout(catalog->source, reterr);
        if (r < 0)
                return r;
        r = source_read(catalog->source, "index.json", MANIFEST_SIZE_MAX, &text, &length, reterr);
        if (r >= 0)
                r = parse_document(text, length, NULL, &json, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "index.json");
        manifests = json_object_get(json, "manifests");
        if (!json_is_array(manifests) || json_array_size(manifests) > DESCRIPTORS_MAX)
                return error_setf(reterr, EBADMSG, "index.json: it has no manifests, or too many");
        json_array_foreach(manifests, i, item) {
                r = add_descriptor(catalog, item, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "index.json");
        }
        return 0;
}
