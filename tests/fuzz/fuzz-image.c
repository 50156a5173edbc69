/* SPDX-License-Identifier: Apache-2.0 */
/* The documents of an image in the order of the requests to a registry, separated by NUL: an index
 * or a manifest, then the documents to which it refers. The result is a valid image, or an
 * error. */

#include "tests/fuzz/fuzz.h"

#include "agent/image-helper/pull/image-manifest.h"
#include "common/cleanup.h"

#include <errno.h>

typedef struct DocumentInput {
        const char *at, *end;
} DocumentInput;

/* Returns the next document, padded to the size in its descriptor. */
static int read_next_document(void *userdata, const CatalogBlob *blob, size_t max_bytes, char **ret,
                              size_t *ret_length, Error *reterr) {
        DocumentInput *documents = userdata;
        size_t length = strnlen(documents->at, (size_t) (documents->end - documents->at));

        assert(digest_is_valid(blob->digest));
        if (blob->size > max_bytes || length > blob->size || length == 0)
                return error_setf(reterr, ENOENT, "it does not exist");
        *ret = malloc((size_t) blob->size + 1);
        assert(*ret);
        memset(*ret, ' ', (size_t) blob->size);
        memcpy(*ret, documents->at, length);
        (*ret)[blob->size] = '\0';
        *ret_length = (size_t) blob->size;
        documents->at += length + (documents->at + length < documents->end);
        return 0;
}

static void check_parsed_image(const CatalogImage *image) {
        const ImageConfig *settings = image->settings;

        assert(settings && settings->n_diff_ids <= LAYERS_MAX);
        assert(!settings->working_dir || settings->working_dir[0] == '/');
        for (char *const *env = settings->env; env && *env; env++)
                assert(strchr(*env, '=') > *env);
        for (size_t i = 0; i < settings->n_diff_ids; i++) {
                assert(digest_is_valid(settings->diff_ids[i]));
                assert(digest_is_valid(image->layers[i].digest));
                assert(media_type_is_layer(image->layers[i].media_type));
        }
}

static void read_image_as(const uint8_t *data, size_t size, bool is_index) {
        DocumentInput documents = { (const char *) data, (const char *) data + size };
        ImageProvider source = { .read = read_next_document, .userdata = &documents };
        size_t length = strnlen(documents.at, size);
        OciDescriptor descriptor = { .media_type =
                                             is_index
                                                     ? "application/vnd.oci.image.index.v1+json"
                                                     : "application/vnd.oci.image.manifest.v1+json",
                                     .size = length };
        cleanup_with(catalog_image_done) CatalogImage image = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r;

        digest_of(data, length, descriptor.digest);
        r = is_index ? image_manifest_read_index(&source, &descriptor, &image, &error)
                     : image_manifest_read(&source, &descriptor, &image, &error);
        if (r == 0)
                check_parsed_image(&image);
        else
                assert(r > 0 || error.message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        read_image_as(data, size, false);
        read_image_as(data, size, true);
        return 0;
}
