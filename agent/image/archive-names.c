/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/archive-names.h"

#include "common/cleanup.h"
#include "common/image-reference.h"
#include "common/strv.h"
#include "common/text.h"

static int add_normalised_image_name(const char *name, char ***names) {
        cleanup_free char *normal = NULL;
        int r;

        r = image_reference_normalise(name, &normal, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        strv_foreach(other, *names)
                if (streq(*other, normal))
                        return 0;
        return strv_append(names, normal);
}

int archive_names_add(const char *name, const char *stem, char ***names) {
        cleanup_free char *tagged = NULL;
        int r;

        r = add_normalised_image_name(name, names);
        if (r < 0 || strpbrk(name, ":/@"))
                return r;
        tagged = text_format("%s:%s", stem, name);
        if (!tagged)
                return -ENOMEM;
        return add_normalised_image_name(tagged, names);
}

char *image_archive_stem(const char *file_name) {
        static const char *const suffixes[] = { ".gz",   ".zst", ".zstd", ".tgz",
                                                ".tzst", ".tar", ".oci",  ".docker" };
        char *stem = strdup(file_name);
        size_t i = 0;

        while (stem && i < N_ELEMENTS(suffixes)) {
                size_t n = strlen(stem), m = strlen(suffixes[i]);

                if (n > m && streq(stem + n - m, suffixes[i])) {
                        stem[n - m] = '\0';
                        i = 0;
                } else {
                        i++;
                }
        }
        return stem;
}
