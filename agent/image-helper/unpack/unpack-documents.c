/* SPDX-License-Identifier: Apache-2.0 */

/* The documents to which index.json refers. Readers of OCI layouts support only OCI's media types,
 * so the store contains an OCI copy of a Docker manifest; the image keeps its own digest as its
 * identity. */

#include "agent/image-helper/pull/document.h"
#include "agent/image-helper/unpack/unpack-private.h"
#include "common/json-text.h"

#define MANIFEST_TYPE "application/vnd.oci.image.manifest.v1+json"
#define LAYER_TYPE    "application/vnd.oci.image.layer.v1.tar"
#define CONFIG_TYPE   "application/vnd.oci.image.config.v1+json"

static int add_layer(json_t *layers, const char *media_type, const char *digest, uint64_t size) {
        return json_array_append_new(layers,
                                     json_pack("{s:s, s:s, s:I}", "mediaType", media_type, "digest",
                                               digest, "size", (json_int_t) size));
}

static int format_manifest(const CatalogImage *image, json_t *layers, char **ret) {
        cleanup_json json_t *manifest = json_pack(
                "{s:i, s:s, s:{s:s, s:s, s:I}, s:O}", "schemaVersion", 2, "mediaType",
                MANIFEST_TYPE, "config", "mediaType", CONFIG_TYPE, "digest", image->config.digest,
                "size", (json_int_t) image->config.size, "layers", layers);

        *ret = manifest ? json_to_text(manifest, JSON_COMPACT) : NULL;
        return *ret ? 0 : -ENOMEM;
}

/* An image without a manifest gets one that lists its layers in uncompressed form. */
static int make_manifest(const ImageUnpack *unpack, char **ret, Error *reterr) {
        cleanup_json json_t *layers = json_array();

        for (size_t i = 0; i < unpack->n; i++) {
                int r = 0;

                /* Copies the blob of a layer that was already present and has therefore not been
                 * read. */
                if (unpack->sizes[i] == 0)
                        r = read_and_verify_layer(unpack, i, -EBADF, NULL, &unpack->sizes[i],
                                                  reterr);
                if (r < 0)
                        return r;
                if (add_layer(layers, LAYER_TYPE, unpack->image->settings->diff_ids[i],
                              unpack->sizes[i]) < 0)
                        return -ENOMEM;
        }
        return format_manifest(unpack->image, layers, ret);
}

static const char *oci_layer_type(const char *media_type) {
        static const struct {
                const char *docker, *oci;
        } types[] = {
                { "application/vnd.docker.image.rootfs.diff.tar", LAYER_TYPE },
                { "application/vnd.docker.image.rootfs.diff.tar.gzip", LAYER_TYPE "+gzip" },
                { "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
                  "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip" },
        };

        for (size_t i = 0; i < N_ELEMENTS(types); i++)
                if (streq(media_type, types[i].docker))
                        return types[i].oci;
        return media_type;
}

static int make_twin(const CatalogImage *image, char **ret) {
        cleanup_json json_t *layers = json_array();

        for (size_t i = 0; i < image->settings->n_diff_ids; i++)
                if (add_layer(layers, oci_layer_type(image->layers[i].media_type),
                              image->layers[i].digest, image->layers[i].size) < 0)
                        return -ENOMEM;
        return format_manifest(image, layers, ret);
}

static int read_document_to_stage(const ImageUnpack *unpack, const CatalogBlob *blob,
                                  size_t max_bytes, char **ret, size_t *ret_length, Error *reterr) {
        return unpack->source->read(unpack->source->userdata, blob, max_bytes, ret, ret_length,
                                    reterr);
}

/* Stages the image's own manifest, if it has one, and returns the manifest for index.json. */
static int stage_own_manifest(const ImageUnpack *unpack, char **ret, size_t *ret_length,
                              Error *reterr) {
        const CatalogImage *image = unpack->image;
        cleanup_free char *text = NULL;
        size_t length;
        int r;

        if (!image->manifest.member) {
                r = make_manifest(unpack, ret, reterr);
                *ret_length = r < 0 ? 0 : strlen(*ret);
                return r;
        }
        r = read_document_to_stage(unpack, &image->manifest, MANIFEST_SIZE_MAX, &text, &length,
                                   reterr);
        if (r < 0)
                return r;
        r = store_stage_blob(unpack->store, image->manifest.digest, text, length, reterr);
        if (r < 0)
                return r;
        if (!streq(image->manifest.media_type, MANIFEST_TYPE)) {
                r = make_twin(image, ret);
                *ret_length = r < 0 ? 0 : strlen(*ret);
                return r;
        }
        *ret = TAKE_PTR(text);
        *ret_length = length;
        return 0;
}

int stage_image_documents(ImageUnpack *unpack, Error *reterr) {
        const CatalogBlob *blob = &unpack->image->config;
        cleanup_free char *manifest = NULL, *config = NULL;
        size_t manifest_length, config_length;
        int r;

        r = read_document_to_stage(unpack, blob, CONFIG_SIZE_MAX, &config, &config_length, reterr);
        if (r < 0)
                return r;
        r = stage_own_manifest(unpack, &manifest, &manifest_length, reterr);
        if (r < 0)
                return r;
        digest_of(manifest, manifest_length, unpack->manifest_digest);
        unpack->manifest_size = manifest_length;
        r = store_stage_blob(unpack->store, blob->digest, config, config_length, reterr);
        if (r < 0)
                return r;
        return store_stage_blob(unpack->store, unpack->manifest_digest, manifest, manifest_length,
                                reterr);
}

int tag_unpacked_image(const ImageUnpack *unpack, char *const *names, Error *reterr) {
        const StoreEntry entry = {
                .media_type = MANIFEST_TYPE,
                .manifest_digest = unpack->manifest_digest,
                .manifest_size = unpack->manifest_size,
                .image_digest = unpack->image->digest,
                .names = names,
        };

        return store_tag_image(unpack->store, &entry, reterr);
}
