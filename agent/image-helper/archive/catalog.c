/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/archive/catalog.h"

#include "agent/image-helper/delta/tar-patch.h"
#include "agent/image-helper/pull/document.h"
#include "agent/image-helper/pull/platform.h"
#include "common/architecture.h"
#include "common/array.h"
#include "common/json-text.h"
#include "common/strv.h"

void catalog_blob_done(CatalogBlob *blob) {
        free(blob->member);
        free(blob->media_type);
        *blob = (CatalogBlob){ 0 };
}

void catalog_image_drop_delta(CatalogImage *image) {
        for (size_t i = 0; image->delta && image->settings && i < image->settings->n_diff_ids; i++)
                catalog_blob_done(&image->delta[i]);
        free(image->delta);
        image->delta = NULL;
        image->base_config[0] = '\0';
}

void catalog_image_done(CatalogImage *image) {
        catalog_image_drop_delta(image);
        for (size_t i = 0; image->layers && image->settings && i < image->settings->n_diff_ids; i++)
                catalog_blob_done(&image->layers[i]);
        free(image->layers);
        catalog_blob_done(&image->manifest);
        catalog_blob_done(&image->config);
        image_config_free(image->settings);
        strv_free(image->names);
        free(image->refusal);
        *image = (CatalogImage){ 0 };
}

Catalog *catalog_free(Catalog *catalog) {
        if (!catalog)
                return NULL;
        for (size_t i = 0; i < catalog->n_images; i++)
                catalog_image_done(&catalog->images[i]);
        free(catalog->images);
        close_fd(catalog->blob_fd);
        free(catalog);
        return NULL;
}

static CatalogImage *find_catalog_image(const Catalog *catalog, const char *digest) {
        for (size_t i = 0; i < catalog->n_images; i++)
                if (streq(catalog->images[i].digest, digest))
                        return &catalog->images[i];
        return NULL;
}

const CatalogImage *catalog_find(const Catalog *catalog, const char *digest) {
        return find_catalog_image(catalog, digest);
}

int catalog_add_take(Catalog *catalog, CatalogImage *image, Error *reterr) {
        CatalogImage *there = find_catalog_image(catalog, image->digest);
        size_t n_names = strv_length(image->names) + strv_length(there ? there->names : NULL);
        int r = 0;

        if (n_names > CATALOG_NAMES_MAX) {
                r = error_setf(reterr, E2BIG, "an image has more than %d names", CATALOG_NAMES_MAX);
        } else if (there) {
                r = strv_extend(&there->names, image->names);
        } else if (catalog->n_images >= CATALOG_IMAGES_MAX) {
                r = error_setf(reterr, E2BIG, "it has more than %d images", CATALOG_IMAGES_MAX);
        } else if (!ARRAY_RESERVE(catalog->images, catalog->n_images, 1)) {
                r = -ENOMEM;
        } else {
                catalog->images[catalog->n_images++] = *image;
                *image = (CatalogImage){ 0 };
                return 0;
        }
        catalog_image_done(image);
        return r;
}

/* Some tools specify neither, in which case the image is for any machine. */
static unsigned image_config_match_score(const ImageConfig *config) {
        return platform_match_score(config->os ? config->os : "linux",
                                    config->architecture ? config->architecture
                                                         : platform_architecture(),
                                    config->variant);
}

int catalog_take_config(CatalogImage *image, const char *text, size_t length, Error *reterr) {
        char digest[DIGEST_SIZE];
        int r;

        digest_of(text, length, digest);
        if (image->config.digest[0] && !streq(digest, image->config.digest))
                return error_setf(reterr, EBADMSG, "the configuration is damaged: its digest is %s",
                                  digest);
        memcpy(image->config.digest, digest, sizeof(digest));
        image->config.size = length;
        r = image_config_parse(text, length, &image->settings, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "configuration");
        if (image_config_match_score(image->settings) == 0)
                return platform_set_mismatch_error(image->settings->os,
                                                   image->settings->architecture,
                                                   image->settings->variant, reterr);
        return 0;
}

int catalog_read_config(const ImageArchive *source, CatalogImage *image, Error *reterr) {
        cleanup_free char *text = NULL;
        size_t length;
        int r;

        r = image_archive_read(source, image->config.member, CONFIG_SIZE_MAX, &text, &length,
                               reterr);
        return r < 0 ? r : catalog_take_config(image, text, length, reterr);
}

int catalog_read(const ImageArchive *source, const Store *store, Catalog **ret, Error *reterr) {
        cleanup_with(catalog_freep) Catalog *catalog = calloc(1, sizeof(*catalog));
        bool oci = image_archive_find(source, "oci-layout") &&
                   image_archive_find(source, "index.json");
        bool docker = image_archive_find(source, "manifest.json");
        int r = 0;

        if (!catalog)
                return -ENOMEM;
        catalog->source = source;
        catalog->store = store;
        catalog->blob_fd = -EBADF;
        if (!oci && !docker)
                return error_setf(reterr, EBADMSG,
                                  "is not an image archive: it has neither an oci-layout with an "
                                  "index.json nor a manifest.json; 'mainstay images import "
                                  "--name' takes a root file system");
        if (oci)
                r = catalog_read_oci(catalog, reterr);
        if (r < 0)
                return r;
        if (docker)
                r = catalog_read_docker(catalog, reterr);
        if (r < 0)
                return r;
        if (catalog->n_images == 0)
                return error_setf(reterr, EBADMSG, "contains no image");
        *ret = TAKE_PTR(catalog);
        return 0;
}

const char *catalog_image_transport(const CatalogImage *image) {
        return image->manifest.member ? "oci-archive" : "docker-archive";
}

const CatalogBlob *catalog_image_blob(const CatalogImage *image, size_t i) {
        return image->delta && image->delta[i].digest[0] ? &image->delta[i] : &image->layers[i];
}

bool catalog_image_needs_base(const CatalogImage *image, size_t i) {
        return image->delta && image->delta[i].digest[0] &&
               streq(image->delta[i].media_type, MEDIA_TYPE_TAR_DIFF);
}

void catalog_image_drop_large_delta_blobs(CatalogImage *image, const bool *missing,
                                          uint64_t *ret_delta, uint64_t *ret_layers) {
        *ret_delta = *ret_layers = 0;
        for (size_t i = 0; i < image->settings->n_diff_ids; i++) {
                if (image->delta[i].digest[0] && image->delta[i].size >= image->layers[i].size)
                        catalog_blob_done(&image->delta[i]);
                if (!missing[i])
                        continue;
                *ret_delta += catalog_image_blob(image, i)->size;
                *ret_layers += image->layers[i].size;
        }
}

uint64_t catalog_image_size(const CatalogImage *image) {
        uint64_t size = 0;

        for (size_t i = 0; image->layers && image->settings && i < image->settings->n_diff_ids; i++)
                size += image->layers[i].size;
        return size;
}

static json_t *catalog_image_to_json(const CatalogImage *image) {
        const ImageConfig *settings = image->settings;
        cleanup_json json_t *layers = json_array();

        for (size_t i = 0; settings && i < settings->n_diff_ids; i++)
                if (json_array_append_new(layers, json_string(settings->diff_ids[i])) < 0)
                        return NULL;
        return json_pack("{s:s, s:s*, s:s, s:o, s:s*, s:s*, s:s*, s:s*, s:I, s:b, s:O}", "digest",
                         image->digest, "indexDigest",
                         image->index_digest[0] ? image->index_digest : NULL, "transport",
                         catalog_image_transport(image), "names",
                         document_string_array(image->names), "os", settings ? settings->os : NULL,
                         "architecture", settings ? settings->architecture : NULL, "variant",
                         settings ? settings->variant : NULL, "refusal", image->refusal, "size",
                         (json_int_t) catalog_image_size(image), "isDelta", image->delta != NULL,
                         "layers", layers);
}

int catalog_print(const Catalog *catalog, Error *reterr) {
        cleanup_json json_t *images = json_array(), *document = NULL;
        cleanup_free char *text = NULL;

        for (size_t i = 0; i < catalog->n_images; i++)
                if (json_array_append_new(images, catalog_image_to_json(&catalog->images[i])) < 0)
                        return -ENOMEM;
        document = json_pack("{s:i, s:O}", "version", 1, "images", images);
        text = document ? json_to_text(document, JSON_COMPACT) : NULL;
        if (!text)
                return -ENOMEM;
        if (puts(text) == EOF || fflush(stdout) != 0)
                return error_setf(reterr, EIO, "cannot write to standard output");
        return 0;
}
