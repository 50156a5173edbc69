/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image-record.h"

#include "agent/image/preload-archives.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static int open_test_images(void) {
        cleanup_free char *path = path_join(test_directory(), "images");
        int fd = open_directory_at(AT_FDCWD, path, 0700);

        REQUIRE(fd >= 0 && mkdir_parents_at(fd, "records", 0700) == 0);
        return fd;
}

static int load_test_record(int images_fd) {
        Image *image = NULL;

        return image_record_load(images_fd, test_directory(), "app:1", "sha256:" HEX, &image, NULL);
}

static bool has_image_file(int images_fd, const char *name) {
        return faccessat(images_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

TEST(a_record_that_cannot_be_read_stays)
{
        cleanup_close int fd = open_test_images();
        struct rlimit limit;
        int r;

        REQUIRE(symlinkat("/proc/self/mem", fd, "records/" HEX ".json") == 0); /* read(): EIO */
        EXPECT_EQ(load_test_record(fd), -EIO);
        REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
        REQUIRE(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, limit.rlim_max }) == 0);
        r = load_test_record(fd);
        REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        EXPECT_EQ(r, -EMFILE);
        EXPECT(has_image_file(fd, "records/" HEX ".json"));
}

TEST(a_damaged_record_is_set_aside)
{
        cleanup_close int fd = open_test_images();

        REQUIRE(write_file_atomic_at(fd, "records/" HEX ".json", "{}", 2, 0600) == 0);
        EXPECT_EQ(load_test_record(fd), -ENOENT);
        EXPECT(!has_image_file(fd, "records/" HEX ".json"));
        EXPECT(has_image_file(fd, "records/" HEX ".json.damaged"));
}

TEST(an_index_of_archives_that_cannot_be_read_stays)
{
        cleanup_close int fd = open_test_images();
        ArchiveSet set = { 0 };

        REQUIRE(symlinkat("/proc/self/mem", fd, "archives.json") == 0);
        archive_set_load(&set, fd);
        EXPECT(has_image_file(fd, "archives.json"));
        REQUIRE(unlinkat(fd, "archives.json", 0) == 0);
        REQUIRE(write_file_atomic_at(fd, "archives.json", "{}", 2, 0600) == 0);
        archive_set_load(&set, fd);
        EXPECT(!has_image_file(fd, "archives.json"));
        EXPECT(has_image_file(fd, "archives.json.damaged"));
        archive_set_done(&set);
}
