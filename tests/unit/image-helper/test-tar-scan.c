/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/archive/tar-scan.h"
#include "common/cleanup.h"
#include "tests/component/image-world.h"

static TarScan scan_tar(const Tar *tar) {
        TarScan scan = { 0 };

        EXPECT(tar_scan((const uint8_t *) tar->data, tar->length, &scan) == 0);
        return scan;
}

TEST(files_are_found_with_their_bytes)
{
        cleanup_with(tar_scan_done) TarScan scan = { 0 };
        Tar tar = { 0 };

        tar_add(&tar, &(TarEntry){ .name = "./dir/", .type = '5' });
        tar_add(&tar, &(TarEntry){ .name = "dir/file", .data = "some text" });
        tar_add(&tar, &(TarEntry){ .name = "link", .type = '1', .link = "./dir/file" });
        tar_add(&tar, &(TarEntry){ .name = "soft", .type = '2', .link = "dir" });
        scan = scan_tar(&tar);
        EXPECT(scan.n == 4);
        EXPECT(streq(scan.entries[0].name, "dir") && scan.entries[0].kind == TAR_SCAN_DIRECTORY);
        EXPECT(streq(scan.entries[1].name, "dir/file") && scan.entries[1].kind == TAR_SCAN_FILE);
        EXPECT(scan.entries[1].size == 9);
        EXPECT(memcmp(tar.data + scan.entries[1].offset, "some text", 9) == 0);
        EXPECT(scan.entries[2].kind == TAR_SCAN_LINK && streq(scan.entries[2].link, "dir/file"));
        EXPECT(scan.entries[3].kind == TAR_SCAN_OTHER);
        free(tar.data);
}

TEST(names_of_pax_replace_those_of_the_header)
{
        cleanup_with(tar_scan_done) TarScan scan = { 0 };
        Tar tar = { 0 };

        tar_add(&tar, &(TarEntry){ .name = "short", .pax = "path=a/longer name", .data = "x" });
        tar_add(&tar, &(TarEntry){ .name = "next", .data = "y" });
        scan = scan_tar(&tar);
        EXPECT(scan.n == 2);
        EXPECT(streq(scan.entries[0].name, "a/longer name") && scan.entries[0].size == 1);
        EXPECT(streq(scan.entries[1].name, "next"));
        free(tar.data);
}

/* The end of the record's value would be before its start. */
TEST(a_record_of_pax_without_a_newline_is_ignored)
{
        static const char record[] = "7 path=";
        cleanup_with(tar_scan_done) TarScan scan = { 0 };
        Tar tar = { 0 };

        tar_header(&tar, &(TarEntry){ .name = "PaxHeaders/x" }, 'x', sizeof(record) - 1);
        tar_append(&tar, record, sizeof(record) - 1);
        tar_add(&tar, &(TarEntry){ .name = "name", .data = "x" });
        scan = scan_tar(&tar);
        EXPECT(scan.n == 1 && streq(scan.entries[0].name, "name"));
        free(tar.data);
}

TEST(sparse_files_and_invalid_names_are_left_out)
{
        cleanup_with(tar_scan_done) TarScan scan = { 0 };
        Tar tar = { 0 };

        tar_add(&tar, &(TarEntry){ .name = "s", .pax = "GNU.sparse.major=1", .data = "x" });
        tar_add(&tar, &(TarEntry){ .name = "../x", .data = "y" });
        scan = scan_tar(&tar);
        EXPECT(scan.n == 1 && scan.entries[0].kind == TAR_SCAN_OTHER);
        free(tar.data);
}

TEST(invalid_bytes_end_the_list)
{
        cleanup_with(tar_scan_done) TarScan scan = { 0 };
        cleanup_with(tar_scan_done) TarScan other = { 0 };
        Tar tar = { 0 };

        tar_add(&tar, &(TarEntry){ .name = "file", .data = "x" });
        tar_add(&tar, &(TarEntry){ .name = "large", .data = "x", .lie = 1 << 30 });
        scan = scan_tar(&tar);
        EXPECT(scan.n == 1);
        EXPECT(tar_scan((const uint8_t *) "no tar", 6, &other) == 0 && other.n == 0);
        free(tar.data);
}
