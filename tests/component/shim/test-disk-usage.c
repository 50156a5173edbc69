/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/disk-usage.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

enum {
        FILE_SIZE = 1 << 20,
        SLACK = 64 * 1024, /* the size of directories themselves, of which there are few */
};

static char *in_test(const char *name) {
        char *path = path_join(test_directory(), name);

        REQUIRE(path != NULL);
        return path;
}

static void write_sized_file(const char *path, size_t size) {
        cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        static char block[64 * 1024];

        REQUIRE(fd >= 0);
        for (size_t i = 0; i < size; i += sizeof(block))
                REQUIRE(write_all(fd, block, sizeof(block)) == 0);
        REQUIRE(fsync(fd) == 0);
}

static uint64_t disk_usage(const char *path) {
        return storage_taken(path, UINT64_MAX).bytes;
}

static uint64_t inode_usage(const char *path) {
        return storage_taken(path, UINT64_MAX).inodes;
}

static void expect_about(uint64_t bytes, uint64_t expected) {
        if (bytes < expected || bytes > expected + SLACK)
                test_fail(__FILE__, __LINE__, "disk_usage()", "is %llu, not %llu",
                          (unsigned long long) bytes, (unsigned long long) expected);
}

TEST(files_count_by_the_blocks_that_they_take)
{
        cleanup_free char *file = in_test("file"), *below = in_test("a/b"),
                          *deep = in_test("a/b/f");
        cleanup_free char *hole = in_test("hole");

        REQUIRE(mkdir_parents_at(AT_FDCWD, below, 0700) == 0);
        write_sized_file(file, FILE_SIZE);
        write_sized_file(deep, FILE_SIZE);
        write_sized_file(hole, 0);
        REQUIRE(truncate(hole, INT64_C(1) << 30) == 0);
        expect_about(disk_usage(test_directory()), UINT64_C(2) * FILE_SIZE);
}

/* If nothing has changed, a walk writes nothing to the disk. */
TEST(measuring_keeps_the_access_times_of_directories)
{
        cleanup_free char *below = in_test("a/b");
        const struct timespec times[] = { { .tv_sec = 1 }, { .tv_nsec = UTIME_OMIT } };
        struct stat st;

        REQUIRE(mkdir_parents_at(AT_FDCWD, below, 0700) == 0);
        REQUIRE(utimensat(AT_FDCWD, below, times, 0) == 0);
        (void) disk_usage(test_directory());
        EXPECT(stat(below, &st) == 0 && st.st_atime == 1);
}

TEST(a_file_with_several_hard_links_counts_once)
{
        cleanup_free char *file = in_test("file"), *other = in_test("other"), *third = in_test("3");

        write_sized_file(file, FILE_SIZE);
        REQUIRE(link(file, other) == 0 && link(file, third) == 0);
        expect_about(disk_usage(test_directory()), FILE_SIZE);
}

TEST(links_and_other_file_systems_are_not_followed)
{
        cleanup_free char *link = in_test("link"), *mount_point = in_test("mount");
        cleanup_free char *file = in_test("mount/file");

        REQUIRE(symlink("/", link) == 0 && mkdir(mount_point, 0700) == 0);
        REQUIRE(unshare(CLONE_NEWNS) == 0 &&
                mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
        REQUIRE(mount("tmpfs", mount_point, "tmpfs", 0, NULL) == 0);
        write_sized_file(file, FILE_SIZE);
        expect_about(disk_usage(test_directory()), 0);
        EXPECT_EQ(disk_usage(link), 0);
        REQUIRE(umount(mount_point) == 0);
}

TEST(a_missing_path_has_no_usage)
{
        cleanup_free char *nothing = in_test("nothing");

        EXPECT_EQ(disk_usage(nothing), 0);
}

TEST(a_tree_that_is_too_deep_counts_as_more_than_any_limit)
{
        cleanup_close int fd = open(test_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        REQUIRE(fd >= 0);
        for (unsigned i = 0; i < 510; i++) {
                int next;

                REQUIRE(mkdirat(fd, "d", 0700) == 0);
                next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                REQUIRE(next >= 0);
                close_fd(fd);
                fd = next;
        }
        EXPECT_EQ(disk_usage(test_directory()), UINT64_MAX);
        EXPECT_EQ(inode_usage(test_directory()), UINT64_MAX);
}

TEST(inodes_are_counted_with_the_directory_itself)
{
        uint64_t before = inode_usage(test_directory());
        char path[512];

        for (int i = 0; i < 5; i++) {
                (void) snprintf(path, sizeof(path), "%s/inode-%d", test_directory(), i);
                REQUIRE(mkdir(path, 0700) == 0);
        }
        EXPECT_EQ(before, 1);
        EXPECT_EQ(inode_usage(test_directory()), before + 5);
        EXPECT_EQ(inode_usage("/no/such/directory"), 0);
}

TEST(a_walk_ends_at_its_time_limit)
{
        cleanup_free char *file = in_test("file");
        StorageTaken taken;

        write_sized_file(file, FILE_SIZE);
        taken = storage_taken(test_directory(), now_boottime_usec());
        EXPECT(taken.is_cut);
        EXPECT_EQ(taken.inodes, 1);
        taken = storage_taken(test_directory(), UINT64_MAX);
        EXPECT(!taken.is_cut);
        EXPECT_EQ(taken.inodes, 2);
}
