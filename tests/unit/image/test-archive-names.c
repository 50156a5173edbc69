/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/archive-names.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "tests/test.h"

TEST(a_bare_tag_of_an_archive_is_combined_with_the_file_name)
{
        static const struct {
                const char *name, *file, *names[3];
        } cases[] = {
                { "latest",
                  "app.tar",
                  { "docker.io/library/latest:latest", "docker.io/library/app:latest" } },
                { "v1",
                  "app.tar.gz",
                  { "docker.io/library/v1:latest", "docker.io/library/app:v1" } },
                { "quay.io/a/b:v2", "app.tar", { "quay.io/a/b:v2" } },
                { "busybox:1", "app.tar", { "docker.io/library/busybox:1" } },
                { "NotAName", "app.tar", { "docker.io/library/app:NotAName" } },
                { "v1", "No Name.tar", { "docker.io/library/v1:latest" } },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *stem = image_archive_stem(cases[i].file);
                cleanup_strv char **names = NULL;

                EXPECT_EQ(archive_names_add(cases[i].name, stem, &names), 0);
                for (size_t j = 0; j < N_ELEMENTS(cases[i].names); j++)
                        EXPECT_STREQ(j < strv_length(names) ? names[j] : NULL, cases[i].names[j]);
        }
}

TEST(a_stem_is_the_file_name_without_compression_suffixes)
{
        static const struct {
                const char *file, *stem;
        } cases[] = {
                { "busybox.tar", "busybox" },
                { "busybox.tar.gz", "busybox" },
                { "busybox.tgz", "busybox" },
                { "busybox.oci.tar.zst", "busybox" },
                { "app-1.2.3.tar", "app-1.2.3" },
                { "image", "image" },
                { ".tar", ".tar" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *stem = image_archive_stem(cases[i].file);
                EXPECT_STREQ(stem, cases[i].stem);
        }
}
