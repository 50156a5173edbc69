/* SPDX-License-Identifier: Apache-2.0 */
#include "common/mount-watch.h"

#include "common/cleanup.h"
#include "tests/test.h"

#include <stdlib.h>

#define ROOT  "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
#define MEDIA "30 21 8:17 / /media rw - vfat /dev/sdb1 rw\n"
#define SPACE "31 21 8:33 / /media/a\\040b rw - vfat /dev/sdc1 rw\n"
#define OTHER "32 21 0:44 / /medialess rw - tmpfs tmpfs rw\n"
#define BELOW "33 21 0:45 / /media/shops/sub rw - tmpfs tmpfs rw\n"

TEST(mounts_on_the_path_and_above_it_are_reported)
{
        static const struct {
                const char *path, *lines;
        } cases[] = {
                { "/media/shops/index.json", ROOT MEDIA },
                { "/media", ROOT MEDIA },
                { "/media/a b/index.json", ROOT MEDIA SPACE },
                { "/srv/index.json", ROOT },
                { "/medialess/x", ROOT OTHER },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *lines = mount_watch_filter(
                        ROOT MEDIA SPACE OTHER BELOW "not a line\n\n", cases[i].path);

                EXPECT_STREQ(lines, cases[i].lines);
        }
}
