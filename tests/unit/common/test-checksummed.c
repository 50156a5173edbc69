/* SPDX-License-Identifier: Apache-2.0 */
#include "common/checksummed.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>

static int open_test_directory(void) {
        int fd = open(test_directory(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        REQUIRE(fd >= 0);
        return fd;
}

TEST(a_checksummed_file_is_read_back)
{
        cleanup_close int fd = open_test_directory();
        cleanup_free char *text = NULL;

        EXPECT_EQ(checksummed_write_at(fd, "record", "{\"a\":1}", 0600), 0);
        EXPECT_EQ(checksummed_read_at(fd, "record", KIB, &text), 0);
        EXPECT_STREQ(text, "{\"a\":1}\n");
}

TEST(every_flipped_bit_and_every_truncation_is_detected)
{
        cleanup_close int fd = open_test_directory();
        cleanup_free char *whole = NULL;
        size_t length = 0;

        EXPECT_EQ(checksummed_write_at(fd, "record", "{\"a\":1}", 0600), 0);
        REQUIRE(read_file_at(fd, "record", KIB, &whole, &length) == 0);
        for (size_t i = 0; i < 8 * length; i++) {
                cleanup_free char *text = NULL;

                whole[i / 8] = (char) (whole[i / 8] ^ 1 << i % 8);
                REQUIRE(write_file_atomic_at(fd, "record", whole, length, 0600) == 0);
                whole[i / 8] = (char) (whole[i / 8] ^ 1 << i % 8);
                EXPECT_EQ(checksummed_read_at(fd, "record", KIB, &text), -EBADMSG);
        }
        for (size_t i = 0; i < length; i++) {
                cleanup_free char *text = NULL;

                REQUIRE(write_file_atomic_at(fd, "record", whole, i, 0600) == 0);
                EXPECT_EQ(checksummed_read_at(fd, "record", KIB, &text), -EBADMSG);
        }
}

TEST(a_damaged_file_is_set_aside)
{
        cleanup_close int fd = open_test_directory();

        REQUIRE(write_file_atomic_at(fd, "record", "x", 1, 0600) == 0);
        checksummed_set_aside_at(fd, "record");
        EXPECT(faccessat(fd, "record", F_OK, 0) < 0);
        EXPECT_EQ(faccessat(fd, "record.damaged", F_OK, 0), 0);
}

TEST(a_file_that_cannot_be_read_is_treated_as_missing)
{
        cleanup_close int fd = open_test_directory();
        cleanup_free char *text = NULL;

        EXPECT_EQ(checksummed_load_at(fd, "missing", KIB, "The record", "it is empty", &text), 0);
        REQUIRE(write_file_atomic_at(fd, "damaged", "x", 1, 0600) == 0);
        EXPECT_EQ(checksummed_load_at(fd, "damaged", KIB, "The record", "it is empty", &text), 0);
        EXPECT_EQ(faccessat(fd, "damaged.damaged", F_OK, 0), 0);
        REQUIRE(mkdirat(fd, "unreadable", 0700) == 0);
        EXPECT_EQ(checksummed_load_at(fd, "unreadable", KIB, "The record", "it is empty", &text),
                  0);
        EXPECT_EQ(faccessat(fd, "unreadable", F_OK, 0), 0);
        EXPECT(!text);
        EXPECT_EQ(checksummed_load_at(-1, "record", KIB, "The record", "it is empty", &text), 0);
        REQUIRE(checksummed_write_at(fd, "record", "1", 0600) == 0);
        EXPECT_EQ(checksummed_load_at(fd, "record", KIB, "The record", "it is empty", &text), 1);
        EXPECT_STREQ(text, "1\n");
}

TEST(a_temporary_read_error_is_not_treated_as_damage)
{
        cleanup_close int fd = open_test_directory();
        cleanup_free char *text = NULL;

        EXPECT_EQ(checksummed_try_load_at(-1, "record", KIB, "The record", "it is empty", &text),
                  -EBADF);
        REQUIRE(mkdirat(fd, "directory", 0700) == 0);
        EXPECT_EQ(checksummed_try_load_at(fd, "directory", KIB, "The record", "it is empty", &text),
                  0);
        EXPECT_EQ(checksummed_try_load_at(fd, "missing", KIB, "The record", "it is empty", &text),
                  0);
        EXPECT(!text);
}

TEST(a_damaged_file_is_replaced_by_the_version_that_was_synced)
{
        static const char synced[] = "record" CHECKSUMMED_SYNCED_SUFFIX;
        cleanup_close int fd = open_test_directory();
        cleanup_free char *text = NULL, *again = NULL, *damaged = NULL;

        REQUIRE(checksummed_write_at(fd, synced, "old", 0600) == 0);
        EXPECT_EQ(checksummed_load_at(fd, "record", KIB, "The record", "it is empty", &text), 0);
        REQUIRE(write_file_atomic_at(fd, "record", "", 0, 0600) == 0);
        EXPECT_EQ(checksummed_load_at(fd, "record", KIB, "The record", "it is empty", &text), 1);
        EXPECT_STREQ(text, "old\n");
        EXPECT_EQ(checksummed_read_at(fd, "record", KIB, &again), 0);
        EXPECT_EQ(faccessat(fd, "record.damaged", F_OK, 0), 0);
        REQUIRE(write_file_atomic_at(fd, synced, "", 0, 0600) == 0);
        REQUIRE(write_file_atomic_at(fd, "record", "", 0, 0600) == 0);
        EXPECT_EQ(checksummed_load_at(fd, "record", KIB, "The record", "it is empty", &damaged), 0);
        EXPECT(!damaged);
}
