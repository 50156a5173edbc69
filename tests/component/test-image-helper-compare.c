/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/delta/tree-compare.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/failing-readdir.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* A directory with two files whose times are the same second, so that its copies are equal. */
static int make_tree(int top_fd, const char *name) {
        static const char *const files[] = { "first", "second" };
        const struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
        int fd;

        REQUIRE(mkdirat(top_fd, name, 0755) == 0);
        fd = openat(top_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        REQUIRE(fd >= 0);
        for (size_t i = 0; i < 2; i++) {
                cleanup_close int file = openat(fd, files[i], O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

                REQUIRE(file >= 0 && futimens(file, times) == 0);
        }
        return fd;
}

TEST(comparison_fails_if_a_tree_cannot_be_listed)
{
        cleanup_close int top = open(test_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_close int sound = make_tree(top, "sound"), here = make_tree(top, "here");
        int r = -EIO;

        REQUIRE(unlinkat(here, "second", 0) == 0);
        for (int n = 0; r < 0 && n < 100; n++) {
                static TreeComparison comparison;

                comparison = (TreeComparison){ 0 };
                readdir_calls_left = n;
                readdir_has_failed = false;
                r = compare_trees(&comparison, sound, here);
                EXPECT_EQ(r, readdir_has_failed ? -EIO : 0);
                readdir_calls_left = -1;
                if (r == 0)
                        EXPECT_EQ(comparison.n_faults, 1U);
                tree_comparison_done(&comparison);
        }
        EXPECT_EQ(r, 0);
}

static void make_device(int dir_fd, const char *name, dev_t number, time_t time) {
        const struct timespec times[2] = { { .tv_sec = time }, { .tv_sec = time } };

        REQUIRE(mknodat(dir_fd, name, S_IFCHR, number) == 0);
        REQUIRE(utimensat(dir_fd, name, times, 0) == 0);
}

TEST(whiteouts_are_equal_whatever_their_creation_time)
{
        cleanup_close int top = open(test_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_close int sound = make_tree(top, "sound"), here = make_tree(top, "here");
        static TreeComparison comparison;

        make_device(sound, "hidden", 0, 1);
        make_device(here, "hidden", 0, 2);
        EXPECT_EQ(compare_trees(&comparison, sound, here), 0);
        EXPECT_EQ(comparison.n_faults, 0U);
        tree_comparison_done(&comparison);

        make_device(sound, "other", 0, 1);
        make_device(here, "other", makedev(1, 3), 1);
        EXPECT_EQ(compare_trees(&comparison, sound, here), 0);
        EXPECT_EQ(comparison.n_faults, 1U);
        tree_comparison_done(&comparison);
}
