/* SPDX-License-Identifier: Apache-2.0 */
/* An archive of images, made by 'docker save' or in an OCI layout, results in a list of usable
 * images, or in an error. */

#include "tests/fuzz/canary.h"

#include "agent/image-helper/archive/catalog.h"

static void check_listed_image(const CatalogImage *image) {
        if (image->refusal)
                return;
        assert(digest_is_valid(image->digest) && image->settings);
        for (size_t i = 0; i < image->settings->n_diff_ids; i++) {
                assert(image->layers[i].member && digest_is_valid(image->settings->diff_ids[i]));
                assert(catalog_image_blob(image, i)->member);
                assert(image->delta || !catalog_image_needs_base(image, i));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_close int spool = open(lay_canary(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_with(image_archive_freep) ImageArchive *archive = NULL;
        cleanup_close int input = open_fuzz_file(data, size);
        cleanup_error Error error = ERROR_NULL;
        Catalog *catalog = NULL;

        if (image_archive_open(input, spool, &archive, &error) < 0 ||
            catalog_read(archive, NULL, &catalog, &error) < 0) {
                assert(error.message);
                return 0;
        }
        assert(catalog->n_images <= CATALOG_IMAGES_MAX);
        for (size_t i = 0; i < catalog->n_images; i++) {
                assert(catalog_find(catalog, catalog->images[i].digest));
                check_listed_image(&catalog->images[i]);
        }
        catalog_free(catalog);
        expect_canary("", "");
        return 0;
}
