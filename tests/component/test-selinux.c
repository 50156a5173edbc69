/* SPDX-License-Identifier: Apache-2.0 */
/* Labels are extended attributes, which every kernel stores, even one without SELinux. */
#include "common/selinux.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

static const char old_label[] = "a_u:a_r:old_t:s0";
static const char new_label[] = "a_u:a_r:new_t:s0:c1,c2";

static char *in_world(const char *path) {
        char *full = path_join(test_directory(), path);

        REQUIRE(full);
        return full;
}

static char *label_of(const char *path) {
        cleanup_free char *full = in_world(path);
        cleanup_close int fd = open(full, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        char *label = NULL;

        REQUIRE(fd >= 0);
        return selinux_label_get(fd, &label) < 0 ? strdup("") : label;
}

static void expect_label(const char *path, const char *expected) {
        cleanup_free char *label = label_of(path);

        EXPECT_STREQ(label, expected);
}

static void make_world(void) {
        static const char *const directories[] = { "v", "v/d", "v/d/e", "outside" };
        static const char *const files[] = { "v/d/e/file", "outside/file" };
        cleanup_free char *link = in_world("v/d/link"), *dangling = in_world("v/dangling");
        cleanup_free char *fifo = in_world("v/fifo"), *outside = in_world("outside");

        for (size_t i = 0; i < N_ELEMENTS(directories); i++) {
                cleanup_free char *path = in_world(directories[i]);

                REQUIRE(mkdir(path, 0700) == 0);
        }
        for (size_t i = 0; i < N_ELEMENTS(files); i++) {
                cleanup_free char *path = in_world(files[i]);

                REQUIRE(write_file_atomic_at(AT_FDCWD, path, "x", 1, 0400) == 0);
                REQUIRE(setxattr(path, "security.selinux", old_label, sizeof(old_label), 0) == 0);
        }
        REQUIRE(symlink(outside, link) == 0);
        REQUIRE(symlink("nowhere", dangling) == 0);
        REQUIRE(mkfifo(fifo, 0600) == 0);
}

TEST(a_tree_gets_a_label_with_all_its_contents_and_links_are_not_followed)
{
        static const char *const labelled[] = { "v",          "v/d",      "v/d/e", "v/d/e/file",
                                                "v/dangling", "v/d/link", "v/fifo" };
        cleanup_free char *top = in_world("v");

        make_world();
        EXPECT_EQ(selinux_label_tree(top, new_label), 0);
        for (size_t i = 0; i < N_ELEMENTS(labelled); i++)
                expect_label(labelled[i], new_label);
        expect_label("outside", "");
        expect_label("outside/file", old_label);
}

TEST(a_single_file_gets_a_label)
{
        cleanup_free char *file = in_world("outside/file");

        make_world();
        EXPECT_EQ(selinux_label_tree(file, new_label), 0);
        expect_label("outside/file", new_label);
}

TEST(a_tree_with_the_label_is_not_walked_again)
{
        cleanup_free char *top = in_world("v"), *file = in_world("v/d/e/file");

        make_world();
        EXPECT_EQ(selinux_label_tree(top, new_label), 0);
        REQUIRE(setxattr(file, "security.selinux", old_label, sizeof(old_label), 0) == 0);
        EXPECT_EQ(selinux_label_tree(top, new_label), 0);
        expect_label("v/d/e/file", old_label);
        EXPECT_EQ(selinux_label_tree(top, old_label), 0);
        EXPECT_EQ(selinux_label_tree(top, new_label), 0);
        expect_label("v/d/e/file", new_label);
}

TEST(a_tree_that_is_too_deep_is_an_error_and_its_top_stays_unlabelled)
{
        cleanup_free char *top = in_world("v");
        cleanup_close int fd = -EBADF;

        make_world();
        fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (unsigned i = 0; i < 600; i++) {
                int next;

                REQUIRE(mkdirat(fd, "deep", 0700) == 0);
                next = openat(fd, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                REQUIRE(next >= 0);
                close_fd(fd);
                fd = next;
        }
        EXPECT_EQ(selinux_label_tree(top, new_label), -ELOOP);
        expect_label("v", "");
        expect_label("v/d/e/file", new_label);
}

TEST(a_missing_path_is_an_error)
{
        cleanup_free char *path = in_world("missing");

        EXPECT_EQ(selinux_label_tree(path, new_label), -ENOENT);
}

/* The kernel would check only the first page of the label. */
TEST(a_label_that_is_longer_than_a_page_is_not_valid)
{
        char label[5000];

        memset(label, 'c', sizeof(label));
        label[sizeof(label) - 1] = '\0';
        EXPECT_EQ(selinux_check_label(label), -EINVAL);
}
