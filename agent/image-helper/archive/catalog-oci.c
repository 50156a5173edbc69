/* SPDX-License-Identifier: Apache-2.0 */

/* OCI image layouts: index.json, manifests, and multi-platform indexes below it. An invalid image
 * is marked as refused and the others stay usable; an invalid index.json makes the archive
 * unusable. */

#include "agent/image-helper/archive/catalog.h"
#include "agent/image-helper/delta/image-delta.h"
#include "agent/image-helper/process/safe-message.h"
#include "agent/image-helper/pull/image-manifest.h"
#include "common/json-text.h"
#include "common/strv.h"

static int read_oci_names(const json_t *descriptor, char ***names) {
        const json_t *annotations = json_object_get(descriptor, "annotations");
        const char *full = json_text(annotations, "io.containerd.image.name");
        const char *name = json_text(annotations, "org.opencontainers.image.ref.name");
        int r = 0;

        if (full)
                r = strv_append(names, full);
        if (r < 0)
                return r;
        /* If there is also a full name, this is only the tag. */
        if (name && (!full || strpbrk(name, ":/")))
                return strv_append(names, name);
        return 0;
}

/* An image or a delta. 1: neither. */
static int read_image_or_delta(const ImageProvider *source, const OciDescriptor *descriptor,
                               CatalogImage *image, Error *error) {
        cleanup_strv char **names = image->names;
        int r = image_manifest_read(source, descriptor, image, error);

        image->names = NULL;
        if (r > 0) {
                catalog_image_done(image);
                memcpy(image->digest, descriptor->digest, DIGEST_SIZE);
                r = image_delta_read(source, descriptor, image, error);
        }
        image->names = TAKE_PTR(names);
        return r;
}

static int add_descriptor(Catalog *catalog, const json_t *item, Error *reterr) {
        ImageProvider source = catalog_image_provider(catalog);
        cleanup_error Error error = ERROR_NULL;
        CatalogImage image = { 0 };
        OciDescriptor descriptor = { 0 };
        bool is_index, is_schema_1;
        int r;

        r = oci_descriptor_parse(item, &descriptor, reterr);
        if (r < 0)
                return r;
        is_index = media_type_is_index(descriptor.media_type);
        is_schema_1 = media_type_is_schema_1(descriptor.media_type);
        if (oci_descriptor_is_attestation(item) ||
            (!is_index && !is_schema_1 && !media_type_is_manifest(descriptor.media_type)))
                return 0;
        memcpy(image.digest, descriptor.digest, DIGEST_SIZE);
        r = read_oci_names(item, &image.names);
        if (r >= 0 && is_schema_1)
                r = document_refuse_schema_1(&error);
        else if (r >= 0)
                r = is_index ? image_manifest_read_index(&source, &descriptor, &image, &error)
                             : read_image_or_delta(&source, &descriptor, &image, &error);
        if (r == -ENOMEM || r > 0) {
                catalog_image_done(&image);
                return MIN(r, 0);
        }
        if (r < 0) {
                image.refusal = format_safe_message(&error, r);
                if (!image.refusal) {
                        catalog_image_done(&image);
                        return -ENOMEM;
                }
        }
        return catalog_add_take(catalog, &image, reterr);
}

static int check_layout(const ImageArchive *source, Error *reterr) {
        cleanup_free char *text = NULL;
        cleanup_json json_t *json = NULL;
        const char *version;
        size_t length;
        int r;

        r = image_archive_read(source, "oci-layout", 4 * KIB, &text, &length, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "oci-layout");
        r = document_parse(text, length, &json, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "oci-layout");
        version = json_text(json, "imageLayoutVersion");
        if (!version || strncmp(version, "1.", 2) != 0)
                return error_setf(reterr, ENOTSUP, "the layout version '%.32s' is unknown",
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
        r = image_archive_read(catalog->source, "index.json", MANIFEST_SIZE_MAX, &text, &length,
                               reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "index.json");
        r = image_manifest_parse(text, length, NULL, &json, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "index.json");
        manifests = json_object_get(json, "manifests");
        if (!json_is_array(manifests) || json_array_size(manifests) > DESCRIPTORS_MAX)
                return error_setf(reterr, EBADMSG,
                                  "index.json: the list of manifests is missing or too long");
        json_array_foreach(manifests, i, item) {
                r = add_descriptor(catalog, item, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "index.json");
        }
        return 0;
}
