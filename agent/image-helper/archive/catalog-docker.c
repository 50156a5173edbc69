/* SPDX-License-Identifier: Apache-2.0 */

/* Archives of "docker save": manifest.json names a configuration and a tar for each layer. There is
 * no manifest with a digest, so the image is identified by its configuration's digest, which Docker
 * calls the image ID. The DiffIDs in the configuration verify the layers. */

#include "agent/image-helper/archive/catalog.h"
#include "agent/image-helper/archive/tar-name.h"
#include "agent/image-helper/process/safe-message.h"
#include "agent/image-helper/pull/document.h"
#include "common/json-text.h"
#include "common/strv.h"

/* The file name contains the digest: "<hex>.json", "sha256:<hex>", "blobs/sha256/<hex>". */
static void digest_from_name(const char *name, char ret[DIGEST_SIZE]) {
        const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
        char digest[DIGEST_SIZE];

        if (strncmp(base, DIGEST_PREFIX, strlen(DIGEST_PREFIX)) == 0)
                base += strlen(DIGEST_PREFIX);
        if (strspn(base, "0123456789abcdef") != SHA256_HEX_SIZE - 1)
                return;
        (void) snprintf(digest, sizeof(digest), DIGEST_PREFIX "%.64s", base);
        memcpy(ret, digest, sizeof(digest));
}

static int parse_docker_layers(const ImageArchive *source, CatalogImage *image, char *const *layers,
                               Error *reterr) {
        size_t n = strv_length(layers);

        if (n != image->settings->n_diff_ids)
                return error_setf(reterr, EBADMSG,
                                  "manifest.json lists %zu layers, the configuration %zu", n,
                                  image->settings->n_diff_ids);
        image->layers = calloc(n, sizeof(*image->layers));
        if (!image->layers)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const ArchiveMember *member;
                int r = tar_name_clean(layers[i], &image->layers[i].member, reterr);

                if (r < 0)
                        return r;
                member = image_archive_find(source, image->layers[i].member);
                if (!member)
                        return error_setf(reterr, ENOENT,
                                          "the archive does not contain layer '%.256s'", layers[i]);
                image->layers[i].size = member->size;
        }
        return 0;
}

static int parse_docker_image(const ImageArchive *source, CatalogImage *image, const json_t *item,
                              Error *reterr) {
        cleanup_strv char **layers = NULL;
        int r;

        digest_from_name(image->config.member, image->config.digest);
        memcpy(image->digest, image->config.digest, DIGEST_SIZE);
        r = document_strv(item, "Layers", &layers, reterr);
        if (r >= 0)
                r = catalog_read_config(source, image, reterr);
        memcpy(image->digest, image->config.digest, DIGEST_SIZE);
        return r < 0 ? r : parse_docker_layers(source, image, layers, reterr);
}

/* In an archive of both formats, the OCI manifest is the image; only its other names are added. */
static int add_docker_names(Catalog *catalog, const CatalogImage *image, Error *reterr) {
        for (size_t i = 0; i < catalog->n_images; i++) {
                CatalogImage *there = &catalog->images[i];

                if (!streq(there->config.digest, image->config.digest))
                        continue;
                strv_foreach(name, image->names) {
                        bool known = false;

                        strv_foreach(other, there->names)
                                known = known || streq(*name, *other);
                        if (!known && strv_length(there->names) >= CATALOG_NAMES_MAX)
                                return error_setf(reterr, E2BIG, "an image has more than %d names",
                                                  CATALOG_NAMES_MAX);
                        if (!known && strv_append(&there->names, *name) < 0)
                                return -ENOMEM;
                }
        }
        return 0;
}

static int add_docker_image(Catalog *catalog, const json_t *item, bool names_only, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        const char *config = json_text(item, "Config");
        CatalogImage image = { 0 };
        int r;

        if (!config)
                return error_setf(reterr, EBADMSG, "an image without 'Config'");
        r = tar_name_clean(config, &image.config.member, reterr);
        if (r >= 0)
                r = document_strv(item, "RepoTags", &image.names, reterr);
        if (r < 0) {
                catalog_image_done(&image);
                return r;
        }
        r = parse_docker_image(catalog->source, &image, item, &error);
        if (names_only) {
                r = r == -ENOMEM ? r : add_docker_names(catalog, &image, reterr);
                catalog_image_done(&image);
                return r;
        }
        if (r < 0) {
                image.refusal = format_safe_message(&error, r);
                if (r == -ENOMEM || !image.refusal) {
                        catalog_image_done(&image);
                        return -ENOMEM;
                }
        }
        return catalog_add_take(catalog, &image, reterr);
}

static int add_listed_items(Catalog *catalog, Error *reterr) {
        cleanup_free char *text = NULL;
        cleanup_json json_t *json = NULL;
        bool names_only = catalog->n_images > 0;
        const json_t *item;
        size_t length, i;
        int r;

        r = image_archive_read(catalog->source, "manifest.json", MANIFEST_SIZE_MAX, &text, &length,
                               reterr);
        if (r < 0)
                return r;
        r = document_parse(text, length, &json, reterr);
        if (r < 0)
                return r;
        if (!json_is_array(json))
                return error_setf(reterr, EBADMSG, "it is not a list");
        /* For each entry the configuration is read, even if the entry is a duplicate. */
        if (json_array_size(json) > CATALOG_IMAGES_MAX)
                return error_setf(reterr, E2BIG, "it lists more than %d images",
                                  CATALOG_IMAGES_MAX);
        json_array_foreach(json, i, item) {
                r = add_docker_image(catalog, item, names_only, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

int catalog_read_docker(Catalog *catalog, Error *reterr) {
        int r = add_listed_items(catalog, reterr);

        return r < 0 ? error_prefixf(reterr, r, "manifest.json") : 0;
}
