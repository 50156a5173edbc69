/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cgroup-io.h"
#include "tests/test.h"

#include <dirent.h>

TEST(pressure_has_the_kernels_numbers)
{
        Pressure pressure;

        pressure_parse("some avg10=0.66 avg60=1.97 avg300=6.07 total=254313914\n"
                       "full avg10=0.02 avg60=0.10 avg300=0.06 total=6804793\n",
                       &pressure);
        EXPECT(pressure.is_known);
        EXPECT_EQ(pressure.some.total_usec, 254313914);
        EXPECT_EQ(pressure.full.total_usec, 6804793);
        EXPECT_EQ((int) (pressure.some.avg300 * 100 + 0.5), 607);
        EXPECT_EQ((int) (pressure.full.avg10 * 100 + 0.5), 2);
}

TEST(pressure_is_known_without_full_and_unknown_without_a_file)
{
        Pressure pressure;

        pressure_parse("some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n", &pressure);
        EXPECT(pressure.is_known && pressure.full.total_usec == 0);
        pressure_parse(NULL, &pressure);
        EXPECT(!pressure.is_known);
        pressure_parse("", &pressure);
        EXPECT(!pressure.is_known);
        pressure_parse("some\nsome avg10=x\nother avg10=1 avg60=1 avg300=1 total=1", &pressure);
        EXPECT(!pressure.is_known);
}

TEST(disks_of_version_2_are_lines_with_keys)
{
        DiskUsages disks;

        disk_usages_parse("8:0 rbytes=4096 wbytes=512 rios=3 wios=2 dbytes=9 dios=9\n"
                          "253:1 \n"
                          "8:16 rbytes=1 wbytes=2 rios=3 wios=4",
                          &disks);
        EXPECT_EQ(disks.n, 3);
        EXPECT_EQ(disks.items[0].major, 8);
        EXPECT_EQ(disks.items[0].read_bytes, 4096);
        EXPECT_EQ(disks.items[0].written_bytes, 512);
        EXPECT_EQ(disks.items[0].reads, 3);
        EXPECT_EQ(disks.items[0].writes, 2);
        EXPECT_EQ(disks.items[1].read_bytes, 0);
        EXPECT_EQ(disks.items[2].minor, 16);
        EXPECT_EQ(disks.items[2].writes, 4);
        disk_usages_parse(NULL, &disks);
        EXPECT_EQ(disks.n, 0);
}

TEST(disks_of_version_1_are_lines_with_operations)
{
        DiskUsages disks;

        disk_usages_parse_v1("8:0 Read 4096\n8:0 Write 512\n8:0 Sync 1\n8:0 Total 4608\nTotal 4608",
                             "8:0 Read 3\n8:0 Write 2\n259:0 Read 1\nTotal 6\n", &disks);
        EXPECT_EQ(disks.n, 2);
        EXPECT_EQ(disks.items[0].read_bytes, 4096);
        EXPECT_EQ(disks.items[0].written_bytes, 512);
        EXPECT_EQ(disks.items[0].reads, 3);
        EXPECT_EQ(disks.items[0].writes, 2);
        EXPECT_EQ(disks.items[1].reads, 1);
        disk_usages_parse_v1(NULL, NULL, &disks);
        EXPECT_EQ(disks.n, 0);
}

TEST(number_of_disks_is_limited)
{
        char text[DISK_USAGES_MAX * 32] = "";
        DiskUsages disks;

        for (unsigned i = 0; i <= DISK_USAGES_MAX; i++)
                (void) snprintf(text + strlen(text), sizeof(text) - strlen(text),
                                "8:%u rbytes=%u\n", i, i);
        disk_usages_parse(text, &disks);
        EXPECT_EQ(disks.n, DISK_USAGES_MAX);
        EXPECT_EQ(disks.items[DISK_USAGES_MAX - 1].read_bytes, DISK_USAGES_MAX - 1);
}

TEST(a_removed_device_has_no_name)
{
        char buffer[DISK_NAME_SIZE];

        EXPECT_STREQ(disk_name(&(DiskUsage){ .major = 4095, .minor = 1 }, buffer), "");
}

TEST(a_device_that_is_not_a_partition_is_its_own_disk)
{
        const DiskUsage device = { .major = 4095, .minor = 7 };
        DiskUsage disk = disk_of_partition(&device);

        EXPECT_EQ(disk.major, 4095);
        EXPECT_EQ(disk.minor, 7);
}

/* Uses any partition of this machine. */
TEST(a_partition_belongs_to_its_disk)
{
        DIR *dir = opendir("/sys/dev/block");
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                DiskUsage device = { 0 }, disk, same;

                if (sscanf(entry->d_name, "%u:%u", &device.major, &device.minor) != 2)
                        continue;
                disk = disk_of_partition(&device);
                same = disk_of_partition(&disk);
                EXPECT_EQ(same.major, disk.major);
                EXPECT_EQ(same.minor, disk.minor);
        }
        if (dir)
                closedir(dir);
}
