/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/archive/tar-name.h"
#include "common/cleanup.h"
#include "tests/test.h"

TEST(names_become_relative_and_plain)
{
        static const struct {
                const char *raw, *clean;
        } cases[] = {
                { "a", "a" },
                { "./a", "a" },
                { "/a", "a" },
                { "///a//b/", "a/b" },
                { "a/./b", "a/b" },
                { "", "" },
                { ".", "" },
                { "./", "" },
                { "/", "" },
                { "..a", "..a" },
                { "a..", "a.." },
                { "...", "..." },
                { "a/.../b", "a/.../b" },
                { " ", " " },
                { "a\nb", "a\nb" },
                { "a/..", "" },
                { "a/../b", "b" },
                { "a/b/../../c", "c" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *clean = NULL;

                EXPECT_EQ(tar_name_clean(cases[i].raw, &clean, NULL), 0);
                EXPECT_STREQ(clean, cases[i].clean);
        }
}

TEST(names_that_leave_the_top_are_refused)
{
        static const char *const names[] = { "..", "../x", "/../x", "a/../../x", "a/b/../../.." };

        for (size_t i = 0; i < N_ELEMENTS(names); i++) {
                cleanup_error Error error = ERROR_NULL;
                cleanup_free char *clean = NULL;

                EXPECT_EQ(tar_name_clean(names[i], &clean, &error), -EINVAL);
                EXPECT(strstr(error.message, "leaves the top"));
        }
}

TEST(names_that_are_too_long_or_too_deep_are_refused)
{
        cleanup_free char *clean = NULL;
        const size_t depth = 2 * (size_t) TAR_NAME_DEPTH_MAX;
        char name[TAR_NAME_LENGTH_MAX + 2];

        memset(name, 'a', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        EXPECT_EQ(tar_name_clean(name, &clean, NULL), -ENAMETOOLONG);
        for (size_t i = 1; i < sizeof(name) - 1; i += 2)
                name[i] = '/';
        name[depth] = '\0';
        EXPECT_EQ(tar_name_clean(name, &clean, NULL), 0);
        name[depth] = 'a';
        EXPECT_EQ(tar_name_clean(name, &clean, NULL), -ENAMETOOLONG);
}

TEST(a_name_is_split_before_its_last_component)
{
        static const struct {
                const char *name, *parent, *base;
        } cases[] = { { "a", "", "a" }, { "a/b", "a", "b" }, { "a/b/c", "a/b", "c" } };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *parent = NULL;
                const char *base;

                EXPECT_EQ(tar_name_split(cases[i].name, &parent, &base), 0);
                EXPECT_STREQ(parent, cases[i].parent);
                EXPECT_STREQ(base, cases[i].base);
        }
}

TEST(whiteouts_are_recognised_by_their_names)
{
        static const struct {
                const char *base;
                int r;
                TarNameKind kind;
                const char *hidden;
        } cases[] = {
                { "x", 0, TAR_NAME_ORDINARY, NULL },
                { ".wh", 0, TAR_NAME_ORDINARY, NULL },
                { "a.wh.x", 0, TAR_NAME_ORDINARY, NULL },
                { ".wh.x", 0, TAR_NAME_WHITEOUT, "x" },
                { ".wh..x", 0, TAR_NAME_WHITEOUT, ".x" },
                { ".wh....", 0, TAR_NAME_WHITEOUT, "..." },
                { ".wh..wh..opq", 0, TAR_NAME_OPAQUE, NULL },
                { ".wh..wh.plnk", 0, TAR_NAME_IGNORED, NULL },
                { ".wh..wh.aufs", 0, TAR_NAME_IGNORED, NULL },
                { ".wh.", -EINVAL, 0, NULL },
                { ".wh..", -EINVAL, 0, NULL },
                { ".wh...", -EINVAL, 0, NULL },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                const char *hidden = NULL;
                TarNameKind kind = 0;

                EXPECT_EQ(tar_name_classify(cases[i].base, &kind, &hidden, NULL), cases[i].r);
                EXPECT_EQ(kind, cases[i].kind);
                EXPECT_STREQ(hidden, cases[i].hidden);
        }
}

TEST(names_below_a_whiteout_are_recognised)
{
        EXPECT(tar_name_is_below_whiteout(".wh.a"));
        EXPECT(tar_name_is_below_whiteout("a/.wh.b"));
        EXPECT(tar_name_is_below_whiteout("a/.wh.b/c"));
        EXPECT(!tar_name_is_below_whiteout(""));
        EXPECT(!tar_name_is_below_whiteout("a/b.wh.c/d"));
}
