/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/image-manifest.h"

#include "agent/image-helper/platform.h"
#include "agent/image-helper/signature-collect.h"

int catalog_blob_init(CatalogBlob *blob, const OciDescriptor *descriptor) {
        memcpy(blob->digest, descriptor->digest, DIGEST_SIZE);
        blob->size = descriptor->size;
        blob->media_type = strdup(descriptor->media_type);
        if (!blob->media_type ||
            asprintf(&blob->member, "blobs/sha256/%s", digest_hex(descriptor->digest)) < 0)
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
        own = document_string(json, "mediaType");
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

/* Attestations and the like, which are listed beside the images that they describe. */
bool oci_descriptor_is_attestation(const json_t *descriptor) {
        return json_object_get(json_object_get(descriptor, "annotations"),
                               "vnd.docker.reference.type");
}

/* The best manifest for this machine. 0, or -ENOEXEC with a list of what the index has. */
static int choose_platform_manifest(const json_t *manifests, OciDescriptor *ret, Error *reterr) {
        const json_t *item, *other = NULL;
        unsigned best = 0;
        size_t i;

        if (!json_is_array(manifests) || json_array_size(manifests) > DESCRIPTORS_MAX)
                return error_setf(reterr, EBADMSG, "the list of manifests is missing or too long");
        json_array_foreach(manifests, i, item) {
                const json_t *platform = json_object_get(item, "platform");
                const char *type = document_string(item, "mediaType");
                unsigned fit;

                if (!type || !media_type_is_manifest(type) || oci_descriptor_is_attestation(item))
                        continue;
                other = platform;
                fit = platform_match_score(document_string(platform, "os"),
                                           document_string(platform, "architecture"),
                                           document_string(platform, "variant"));
                if (fit > best) {
                        int r = oci_descriptor_parse(item, ret, reterr);

                        if (r < 0)
                                return r;
                        best = fit;
                }
        }
        if (best > 0)
                return 0;
        (void) platform_set_mismatch_error(document_string(other, "os"),
                                           document_string(other, "architecture"),
                                           document_string(other, "variant"), reterr);
        return -ENOEXEC;
}

int image_manifest_read_index(const ImageProvider *source, const OciDescriptor *descriptor,
                              CatalogImage *image, Error *reterr) {
        cleanup_with(catalog_blob_done) CatalogBlob blob = { 0 };
        cleanup_json json_t *index = NULL;
        OciDescriptor chosen = { 0 };
        int r;

        memcpy(image->index_digest, descriptor->digest, DIGEST_SIZE);
        r = catalog_blob_init(&blob, descriptor);
        if (r < 0)
                return r;
        r = image_manifest_provide(source, &blob, &index, reterr);
        if (r < 0)
                return r;
        r = choose_platform_manifest(json_object_get(index, "manifests"), &chosen, reterr);
        if (r < 0)
                return r;
        memcpy(image->digest, chosen.digest, DIGEST_SIZE);
        return image_manifest_read(source, &chosen, image, reterr);
}
