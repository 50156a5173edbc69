/* SPDX-License-Identifier: Apache-2.0 */
/* A reference to an image, or the name that an archive gives one: the normalised name is that of
 * itself. */

#include "tests/fuzz/fuzz.h"

#include "agent/image/image-reference.h"
#include "common/cleanup.h"
#include "common/strv.h"

static void check_normalised(const char *name) {
        cleanup_free char *again = NULL;
        const char *digest = image_reference_digest(name);

        assert(image_reference_normalise(name, &again, NULL) >= 0 && streq(again, name));
        assert(!digest || strlen(digest) == strlen("sha256:") + 64);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_free char *text = strndup((const char *) data, size), *name = NULL, *stem = NULL;
        cleanup_strv char **names = NULL;
        cleanup_error Error error = ERROR_NULL;

        assert(text);
        if (image_reference_normalise(text, &name, &error) >= 0)
                check_normalised(name);
        else
                assert(error.message);
        stem = image_archive_stem(text);
        assert(image_reference_names_from_archive(text, stem, &names) >= 0);
        strv_foreach(one, names)
                check_normalised(*one);
        return 0;
}
