/* SPDX-License-Identifier: Apache-2.0 */

/* Compressed bytes, valid and malicious. */

#include "agent/image-helper/archive/byte-stream.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <archive_entry.h>
#include <fcntl.h>

enum {
        CHUNK_BYTES = 1 << 20
};

#define TEXT "some words that are worth packing, worth packing, worth packing"

static const char *packed_path(void) {
        static char path[128];

        (void) snprintf(path, sizeof(path), "%s/packed", test_directory());
        return path;
}

/* Appends one compressed member that contains the data 'times' times. */
static void write_packed_file(int (*filter)(struct archive *), const void *data, size_t length,
                              unsigned times) {
        cleanup_close int fd = open(packed_path(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        struct archive *archive = archive_write_new();
        struct archive_entry *entry = archive_entry_new();

        REQUIRE(fd >= 0 && archive && entry);
        archive_entry_set_filetype(entry, AE_IFREG);
        REQUIRE(archive_write_set_format_raw(archive) == ARCHIVE_OK);
        REQUIRE(filter(archive) == ARCHIVE_OK);
        REQUIRE(archive_write_set_bytes_in_last_block(archive, 1) == ARCHIVE_OK);
        REQUIRE(archive_write_open_fd(archive, fd) == ARCHIVE_OK);
        REQUIRE(archive_write_header(archive, entry) == ARCHIVE_OK);
        for (unsigned i = 0; i < times; i++)
                REQUIRE(archive_write_data(archive, data, length) == (la_ssize_t) length);
        archive_entry_free(entry);
        REQUIRE(archive_write_free(archive) == ARCHIVE_OK);
}

static void append_packed(const void *data, size_t length) {
        cleanup_close int fd = open(packed_path(), O_WRONLY | O_APPEND | O_CLOEXEC);

        REQUIRE(fd >= 0 && write_all(fd, data, length) >= 0);
}

/* Decompresses the file to its end. Returns 0 with the text, which is cut if it is long. */
static int unpack_packed_file(char ret[static 256], Error *reterr) {
        cleanup_close int fd = open(packed_path(), O_RDONLY | O_CLOEXEC);
        cleanup_with(byte_stream_freep) ByteStream *plain = NULL;
        size_t length = 0;
        ByteStream *file = NULL;
        ssize_t n;
        int r;

        REQUIRE(fd >= 0 && byte_stream_new_file(fd, 0, &file) >= 0);
        r = byte_stream_new_unpacked_take(file, &plain, reterr);
        if (r < 0)
                return r;
        for (;;) {
                const void *data;

                n = byte_stream_read(plain, &data, reterr);
                if (n <= 0)
                        break;
                length += (size_t) snprintf(ret + length, 256 - length, "%.*s", (int) MIN(n, 200),
                                            (const char *) data);
                length = MIN(length, (size_t) 255);
        }
        ret[length] = '\0';
        return (int) n;
}

static void remove_packed_file(void) {
        (void) unlink(packed_path());
}

TEST(every_compression_gives_the_same_bytes)
{
        int (*const filters[])(struct archive *) = { archive_write_add_filter_gzip,
                                                     archive_write_add_filter_zstd,
                                                     archive_write_add_filter_none };

        for (size_t i = 0; i < N_ELEMENTS(filters); i++) {
                char text[256];

                remove_packed_file();
                write_packed_file(filters[i], TEXT, strlen(TEXT), 1);
                EXPECT_EQ(unpack_packed_file(text, NULL), 0);
                EXPECT_STREQ(text, TEXT);
        }
}

TEST(gzip_members_are_concatenated_and_trailing_bytes_ignored)
{
        char text[256];

        remove_packed_file();
        write_packed_file(archive_write_add_filter_gzip, "one ", 4, 1);
        write_packed_file(archive_write_add_filter_gzip, "", 0, 0);
        write_packed_file(archive_write_add_filter_gzip, "two", 3, 1);
        EXPECT_EQ(unpack_packed_file(text, NULL), 0);
        EXPECT_STREQ(text, "one two");
        append_packed("\0\0\0\0 padding", 12);
        EXPECT_EQ(unpack_packed_file(text, NULL), 0);
        EXPECT_STREQ(text, "one two");
}

TEST(input_too_short_to_be_compressed_is_unchanged)
{
        static const char *const texts[] = { "", "x", "\x1f", "\x1f\x8b", "\x1f\x8b\x08" };

        for (size_t i = 0; i < 2; i++) {
                char text[256];

                remove_packed_file();
                write_packed_file(archive_write_add_filter_none, texts[i], strlen(texts[i]), 1);
                EXPECT_EQ(unpack_packed_file(text, NULL), 0);
                EXPECT_STREQ(text, texts[i]);
        }
        /* A truncated gzip header may be treated as gzip or as plain data, but the stream must
         * end. */
        for (size_t i = 2; i < N_ELEMENTS(texts); i++) {
                char text[256];

                remove_packed_file();
                write_packed_file(archive_write_add_filter_none, texts[i], strlen(texts[i]), 1);
                (void) unpack_packed_file(text, NULL);
        }
}

TEST(truncated_or_damaged_gzip_is_refused_or_gives_different_bytes)
{
        /* libarchive does not recognize an incomplete header as gzip, and ignores the checksum; in
         * these cases the digest of the layer detects damage. */
#if defined(__x86_64__) || defined(__aarch64__)
        const bool by_libarchive = false;
#else
        const bool by_libarchive = true;
#endif
        cleanup_free char *whole = NULL;
        size_t length;

        remove_packed_file();
        write_packed_file(archive_write_add_filter_gzip, TEXT, strlen(TEXT), 1);
        REQUIRE(read_file_at(AT_FDCWD, packed_path(), MIB, &whole, &length) >= 0);
        for (size_t cut = by_libarchive ? 10 : 4; cut < length; cut++) {
                cleanup_error Error error = ERROR_NULL;
                char text[256];

                remove_packed_file();
                write_packed_file(archive_write_add_filter_none, whole, cut, 1);
                EXPECT(unpack_packed_file(text, &error) < 0);
                EXPECT(error.message);
        }
        /* Name, time and system in the header are meaningless; everything else is part of the
         * checksum. */
        for (size_t at = 10; at < length; at++)
                for (unsigned bit = 0; bit < 8; bit++) {
                        char text[256];

                        whole[at] = (char) (whole[at] ^ (1 << bit));
                        remove_packed_file();
                        write_packed_file(archive_write_add_filter_none, whole, length, 1);
                        EXPECT(unpack_packed_file(text, NULL) < 0 || by_libarchive ||
                               streq(text, TEXT));
                        whole[at] = (char) (whole[at] ^ (1 << bit));
                }
}

TEST(an_excessive_compression_ratio_is_refused)
{
        cleanup_error Error error = ERROR_NULL;
        char *zeros = calloc(1, CHUNK_BYTES), text[256];

        REQUIRE(zeros);
        remove_packed_file();
        write_packed_file(archive_write_add_filter_gzip, zeros, CHUNK_BYTES, 1100);
        free(zeros);
        EXPECT_EQ(unpack_packed_file(text, &error), -EFBIG);
        EXPECT_STREQ(error.message, "decompresses to more than 250 times its size");
}
