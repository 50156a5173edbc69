/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a volume before and after its files are replaced, from the perspective of
 * readers. */

#include "agent/bundle/atomic-writer.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>

static int open_scratch(char path[64]) {
        int fd;

        (void) snprintf(path, 64, "/tmp/payload-XXXXXX");
        REQUIRE(mkdtemp(path));
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        REQUIRE(fd >= 0);
        return fd;
}

static void expect_file(int dir_fd, const char *path, const char *expected) {
        cleanup_free char *data = NULL;
        int r = read_file_at(dir_fd, path, MIB, &data, NULL);

        if (!expected)
                EXPECT_EQ(r, -ENOENT);
        else
                EXPECT_STREQ(r < 0 ? NULL : data, expected);
}

static int write_two(int dir_fd, const char *first, const char *a, const char *second,
                     const char *b, bool replaces) {
        cleanup_with(volume_payload_done) VolumePayload payload = { .group = -1 };

        REQUIRE(volume_payload_add(&payload, first, a, strlen(a), 0640) == 0);
        REQUIRE(volume_payload_add(&payload, second, b, strlen(b), 0400) == 0);
        return atomic_writer_write(dir_fd, &payload, replaces);
}

static size_t count_entries(int dir_fd) {
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_closedir DIR *dir = fdopendir(copy);
        size_t n = 0;

        REQUIRE(dir);
        while (readdir(dir))
                n++;
        return n - 2;
}

TEST(files_are_exchanged_atomically_and_old_ones_removed)
{
        char path[64];
        cleanup_close int fd = open_scratch(path), old = -EBADF;
        struct stat st;

        EXPECT_EQ(write_two(fd, "dir/a", "1", "b", "2", false), 1);
        expect_file(fd, "dir/a", "1");
        expect_file(fd, "b", "2");
        EXPECT(fstatat(fd, "dir/a", &st, 0) == 0 && (st.st_mode & 07777) == 0640);
        EXPECT(fstatat(fd, "b", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode));
        EXPECT_EQ(count_entries(fd), 4);

        old = openat(fd, "b", O_RDONLY | O_CLOEXEC);
        EXPECT_EQ(write_two(fd, "dir/a", "x", "c", "y", false), 1);
        expect_file(fd, "dir/a", "x");
        expect_file(fd, "c", "y");
        expect_file(fd, "b", NULL);
        EXPECT(fstatat(fd, "b", &st, AT_SYMLINK_NOFOLLOW) < 0);
        EXPECT_EQ(count_entries(fd), 4);
        /* A reader that has the old file open keeps reading it. */
        EXPECT(old >= 0 && fstat(old, &st) == 0 && st.st_size == 1);
        EXPECT_EQ(remove_tree_at(AT_FDCWD, path), 0);
}

TEST(unchanged_files_are_not_rewritten_unless_untrusted)
{
        char path[64], before[128] = "", after[128] = "";
        cleanup_close int fd = open_scratch(path);

        EXPECT_EQ(write_two(fd, "a", "1", "b", "2", false), 1);
        REQUIRE(readlinkat(fd, "..data", before, sizeof(before) - 1) > 0);
        REQUIRE(unlinkat(fd, "b", 0) == 0);
        EXPECT_EQ(write_two(fd, "b", "2", "a", "1", false), 1); /* the modes differ */
        EXPECT_EQ(write_two(fd, "b", "2", "a", "1", false), 0);
        expect_file(fd, "b", "2");
        REQUIRE(readlinkat(fd, "..data", before, sizeof(before) - 1) > 0);
        EXPECT_EQ(write_two(fd, "b", "2", "a", "1", true), 1);
        REQUIRE(readlinkat(fd, "..data", after, sizeof(after) - 1) > 0);
        EXPECT(!streq(before, after));
        EXPECT_EQ(count_entries(fd), 4);
        EXPECT_EQ(remove_tree_at(AT_FDCWD, path), 0);
}

TEST(remains_of_a_writer_that_died_are_removed)
{
        static const char old[] = "..2026_01_02_03_04_05.000006-0123456789abcdef";
        char path[64];
        cleanup_close int fd = open_scratch(path);
        struct stat st;

        EXPECT_EQ(write_two(fd, "a", "1", "b", "2", false), 1);
        REQUIRE(mkdirat(fd, old, 0755) >= 0);
        REQUIRE(symlinkat("..data/c", fd, "c") >= 0);
        REQUIRE(unlinkat(fd, "b", 0) >= 0);
        EXPECT_EQ(write_two(fd, "a", "1", "b", "2", false), 0);
        expect_file(fd, "b", "2");
        EXPECT(fstatat(fd, old, &st, AT_SYMLINK_NOFOLLOW) < 0);
        EXPECT(fstatat(fd, "c", &st, AT_SYMLINK_NOFOLLOW) < 0);
        EXPECT_EQ(count_entries(fd), 4);
        (void) remove_tree_at(AT_FDCWD, path);
}

TEST(names_of_mount_points_are_kept_and_get_no_link)
{
        static char name[] = "point";
        char *hidden[] = { name, NULL };
        char path[64];
        cleanup_close int fd = open_scratch(path);
        struct stat st;

        for (unsigned round = 0; round < 3; round++) {
                VolumePayload payload = { .group = -1, .hidden = hidden };
                char text[] = { (char) ('0' + round), '\0' };

                REQUIRE(volume_payload_add(&payload, "point/key", "x", 1, 0644) == 0);
                REQUIRE(volume_payload_add(&payload, "key", text, 1, 0644) == 0);
                EXPECT_EQ(atomic_writer_write(fd, &payload, false), 1);
                expect_file(fd, "key", text);
                if (round == 0) {
                        EXPECT(fstatat(fd, "point", &st, AT_SYMLINK_NOFOLLOW) < 0);
                        REQUIRE(mkdirat(fd, "point", 0755) >= 0);
                }
                EXPECT(fstatat(fd, "point", &st, AT_SYMLINK_NOFOLLOW) >= 0 && S_ISDIR(st.st_mode));
                payload.hidden = NULL;
                volume_payload_done(&payload);
        }
        EXPECT_EQ(remove_tree_at(AT_FDCWD, path), 0);
}

TEST(planted_links_are_not_followed)
{
        char path[64], outside[64];
        cleanup_close int fd = open_scratch(path), outside_fd = open_scratch(outside);

        REQUIRE(symlinkat(outside, fd, "..data") == 0);
        REQUIRE(symlinkat(outside, fd, "dir") == 0);
        EXPECT_EQ(write_two(fd, "dir/a", "1", "b", "2", false), 1);
        EXPECT_EQ(count_entries(outside_fd), 0);
        expect_file(fd, "b", "2");
        EXPECT_EQ(remove_tree_at(AT_FDCWD, path), 0);
        EXPECT_EQ(remove_tree_at(AT_FDCWD, outside), 0);
}

TEST(a_file_where_a_directory_is_needed_changes_nothing)
{
        char path[64];
        cleanup_close int fd = open_scratch(path);

        EXPECT_EQ(write_two(fd, "a", "1", "b", "2", false), 1);
        EXPECT(write_two(fd, "a", "x", "a/b", "y", false) < 0);
        expect_file(fd, "a", "1");
        expect_file(fd, "b", "2");
        EXPECT_EQ(count_entries(fd), 4);
        EXPECT_EQ(remove_tree_at(AT_FDCWD, path), 0);
}

TEST(last_of_two_files_with_one_path_is_used)
{
        char path[64];
        cleanup_close int fd = open_scratch(path);

        EXPECT_EQ(write_two(fd, "a", "1", "a", "2", false), 1);
        expect_file(fd, "a", "2");
        /* Names that are sorted between a directory and its files. */
        EXPECT_EQ(write_two(fd, "a/b", "3", "a-b", "4", false), 1);
        expect_file(fd, "a/b", "3");
        expect_file(fd, "a-b", "4");
        EXPECT_EQ(count_entries(fd), 4);
        EXPECT_EQ(remove_tree_at(AT_FDCWD, path), 0);
}
