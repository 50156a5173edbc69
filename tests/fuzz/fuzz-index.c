/* SPDX-License-Identifier: Apache-2.0 */
/* Any input as an index is refused with an error, or refers only to valid file names in a
 * directory, and to images by normalised names and by digests that are valid file names. The same
 * holds for the file of its signatures. */

#include "tests/fuzz/fuzz.h"

#include "agent/model/source-index.h"
#include "common/cleanup.h"
#include "common/ed25519.h"
#include "common/image-reference.h"

static void check_index_blob(const SourceIndexBlob *blob) {
        assert(strlen(blob->digest) == SOURCE_DIGEST_SIZE - 1 && !strchr(blob->digest, '/'));
        assert(blob->size > 0);
}

static void check_index_image(const SourceIndex *index, const SourceIndexImage *image) {
        assert(source_index_find_image(index, image->name) == image);
        assert(image_reference_equals(image->name, image->name) && image->platforms.n > 0);
        for (size_t i = 0; i < image->platforms.n; i++) {
                const SourceIndexPlatform *platform = &image->platforms.items[i];

                check_index_blob(&platform->manifest);
                assert(source_index_platform_bytes(platform) >= platform->manifest.size);
                for (size_t k = 0; k < platform->blobs.n; k++)
                        check_index_blob(&platform->blobs.items[k]);
                for (size_t k = 0; k < platform->deltas.n; k++)
                        check_index_blob(&platform->deltas.items[k].manifest);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        uint8_t signatures[ED25519_SIGNATURES_MAX][ED25519_SIGNATURE_SIZE];
        cleanup_with(source_index_done) SourceIndex index = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = source_index_parse((const char *) data, size, MIB, &index, &error);

        assert(ed25519_signatures_parse((const char *) data, size, signatures) <=
               ED25519_SIGNATURES_MAX);
        if (r < 0) {
                assert(r == -EBADMSG && error.message);
                return 0;
        }
        assert(index.number > 0 && source_name_is_valid(index.fleet));
        for (size_t i = 0; i < index.files.n; i++) {
                const SourceIndexFile *file = &index.files.items[i];

                assert(!strchr(file->name, '/') && file->name[0] != '.');
                assert(file->size > 0 && file->size <= MIB);
                assert(i == 0 || strcmp(file->name, index.files.items[i - 1].name) > 0);
        }
        for (size_t i = 0; i < index.images.n; i++)
                check_index_image(&index, &index.images.items[i]);
        return 0;
}
