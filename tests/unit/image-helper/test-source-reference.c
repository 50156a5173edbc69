/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/source/source-transfer.h"
#include "tests/test.h"

TEST(files_of_an_index_are_next_to_it)
{
        static const struct {
                const char *url, *suffix, *sibling, *reference;
        } cases[] = {
                { "https://h/a/index.json", "", NULL, "https://h/a/index.json" },
                { "https://h/a/index.json", ".sig", NULL, "https://h/a/index.json.sig" },
                { "https://h/a/index.json?t=/x", ".sig", NULL, "https://h/a/index.json.sig?t=/x" },
                { "https://h/a/index.json?t=/x", NULL, "sha256/0", "https://h/a/sha256/0?t=/x" },
                { "https://h/", NULL, "sha256/0", "https://h/sha256/0" },
                { "index.json", ".sig", NULL, "index.json.sig" },
                { "index.json", NULL, "sha256/0", "sha256/0" },
                { "/media/stick/index.json", NULL, ".", "/media/stick/." },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *text =
                        source_reference(cases[i].url, cases[i].suffix, cases[i].sibling);

                EXPECT_STREQ(text, cases[i].reference);
        }
}
