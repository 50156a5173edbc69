/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/delta/image-delta.h"

#include "agent/image-helper/delta/tar-patch.h"
#include "common/json-text.h"

static const char *delta_annotation(const json_t *object, const char *key) {
        return json_text(object, "annotations", key);
}

static bool has_content(const json_t *layer, const char *content) {
        const char *own = delta_annotation(layer, ANNOTATION_DELTA_CONTENT);

        return own && streq(own, content);
}

static int get_delta_layers(const json_t *manifest, const json_t **ret, Error *reterr) {
        *ret = json_object_get(manifest, "layers");
        if (!json_is_array(*ret) || json_array_size(*ret) > DESCRIPTORS_MAX)
                return error_setf(reterr, EBADMSG,
                                  "the delta's list of layers is missing or too "
                                  "long");
        return 0;
}

/* ---- attaching it to an image ---- */

static int find_layer_index(const CatalogImage *image, const char *digest) {
        for (size_t i = 0; i < image->settings->n_diff_ids; i++)
                if (streq(image->layers[i].digest, digest))
                        return (int) i;
        return -ENOENT;
}

/* Layers of other images and duplicate layers are ignored. */
static int attach_delta_layer(const json_t *layer, CatalogImage *image, Error *reterr) {
        const char *to = delta_annotation(layer, ANNOTATION_DELTA_TO);
        OciDescriptor descriptor = { 0 };
        int i, r;

        if (!has_content(layer, "image-layer") || !to)
                return 0;
        r = oci_descriptor_parse(layer, &descriptor, reterr);
        if (r < 0)
                return r;
        if (!streq(descriptor.media_type, MEDIA_TYPE_TAR_DIFF) &&
            !media_type_is_layer(descriptor.media_type))
                return error_setf(reterr, ENOTSUP,
                                  "a layer of the delta has the unknown type '%.128s'",
                                  descriptor.media_type);
        i = find_layer_index(image, to);
        if (i < 0 || image->delta[i].digest[0])
                return 0;
        return catalog_blob_init(&image->delta[i], &descriptor);
}

static int attach_delta_layers(const json_t *manifest, CatalogImage *image, Error *reterr) {
        const json_t *layers, *layer;
        size_t i;
        int r = get_delta_layers(manifest, &layers, reterr);

        if (r < 0)
                return r;
        image->delta = calloc(image->settings->n_diff_ids, sizeof(*image->delta));
        if (!image->delta)
                return -ENOMEM;
        json_array_foreach(layers, i, layer) {
                r = attach_delta_layer(layer, image, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

int image_delta_attach(const json_t *manifest, CatalogImage *image, Error *reterr) {
        const char *base = delta_annotation(manifest, ANNOTATION_DELTA_CONFIG);
        const char *target = delta_annotation(manifest, ANNOTATION_DELTA_TARGET);
        int r;

        if (!artifact_has_type(manifest, ARTIFACT_TYPE_DELTA))
                return error_setf(reterr, EBADMSG, "the artifact is not a delta");
        if (!base || digest_parse(base, image->base_config) < 0)
                return error_setf(reterr, EBADMSG, "the delta does not name its base image");
        if (target && !streq(target, image->digest))
                return error_setf(reterr, EBADMSG, "the delta makes image '%.128s'", target);
        r = attach_delta_layers(manifest, image, reterr);
        if (r < 0)
                catalog_image_drop_delta(image);
        return r;
}

/* ---- a delta on its own ---- */

static int find_embedded_manifest(const json_t *artifact, OciDescriptor *ret, Error *reterr) {
        const json_t *layers, *layer;
        size_t i;
        int r = get_delta_layers(artifact, &layers, reterr);

        if (r < 0)
                return r;
        json_array_foreach(layers, i, layer)
                if (has_content(layer, "image-manifest"))
                        return oci_descriptor_parse(layer, ret, reterr);
        return error_setf(reterr, EBADMSG, "the delta does not contain the manifest of the image");
}

int image_delta_read(const ImageProvider *source, const OciDescriptor *descriptor,
                     CatalogImage *image, Error *reterr) {
        cleanup_with(catalog_blob_done) CatalogBlob blob = { 0 };
        cleanup_json json_t *artifact = NULL;
        ImageProvider whole = *source;
        OciDescriptor target = { 0 };
        int r;

        r = catalog_blob_init(&blob, descriptor);
        if (r < 0)
                return r;
        r = image_manifest_provide(source, &blob, &artifact, reterr);
        if (r < 0)
                return r;
        if (!artifact_has_type(artifact, ARTIFACT_TYPE_DELTA))
                return 1;
        r = find_embedded_manifest(artifact, &target, reterr);
        if (r < 0)
                return r;
        memcpy(image->digest, target.digest, DIGEST_SIZE);
        /* A delta omits layers. */
        whole.check_layer = NULL;
        r = image_manifest_read(&whole, &target, image, reterr);
        if (r != 0)
                return r < 0 ? r : error_setf(reterr, EBADMSG, "the delta is not of an image");
        return image_delta_attach(artifact, image, reterr);
}

/* ---- the base ---- */

static int open_base_layers(const Store *store, const ImageConfig *settings, DeltaBase *base,
                            Error *reterr) {
        char chain_id[DIGEST_SIZE];

        for (size_t i = 0; i < settings->n_diff_ids; i++) {
                int fd;

                digest_chain(i > 0 ? chain_id : NULL, settings->diff_ids[i], chain_id);
                fd = store_open_layer(store, chain_id);
                if (fd == -ENOENT)
                        return error_setf(reterr, ENOENT,
                                          "a layer of the image that the delta is based on is not "
                                          "in the store");
                if (fd < 0)
                        return fd;
                base->layers[base->n - 1 - i] = fd;
        }
        return 0;
}

int delta_base_open(const Store *store, const char *config_digest, DeltaBase *ret, Error *reterr) {
        cleanup_with(image_config_freep) ImageConfig *settings = NULL;
        cleanup_with(delta_base_done) DeltaBase base = { 0 };
        cleanup_free char *text = NULL;
        size_t length;
        int r;

        r = store_read_blob(store, config_digest, CONFIG_SIZE_MAX, &text, &length);
        if (r == -ENOENT)
                return error_setf(reterr, ENOENT,
                                  "the image that the delta is based on is not in the store: that "
                                  "with configuration %s",
                                  config_digest);
        if (r < 0)
                return error_prefixf(reterr, r, "the image that the delta is based on");
        r = image_config_parse(text, length, &settings, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "the image that the delta is based on");
        base.layers = malloc(MAX(settings->n_diff_ids, (size_t) 1) * sizeof(*base.layers));
        if (!base.layers)
                return -ENOMEM;
        for (base.n = 0; base.n < settings->n_diff_ids; base.n++)
                base.layers[base.n] = -EBADF;
        r = open_base_layers(store, settings, &base, reterr);
        if (r < 0)
                return r;
        *ret = base;
        base = (DeltaBase){ 0 };
        return 0;
}

void delta_base_done(DeltaBase *base) {
        for (size_t i = 0; i < base->n; i++)
                close_fd(base->layers[i]);
        free(base->layers);
        *base = (DeltaBase){ 0 };
}

bool delta_base_is_present(const Store *store, const char *config_digest) {
        cleanup_with(delta_base_done) DeltaBase base = { 0 };
        cleanup_error Error error = ERROR_NULL;

        return delta_base_open(store, config_digest, &base, &error) >= 0;
}
