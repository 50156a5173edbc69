/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/volume-group.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/failing-readdir.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>

enum {
        GROUP = 4321
};

static gid_t group_of(const char *name) {
        cleanup_free char *path = path_join(test_directory(), name);
        struct stat st;

        REQUIRE(path && stat(path, &st) == 0);
        return st.st_gid;
}

static void create_volume_file(const char *name) {
        cleanup_free char *path = path_join(test_directory(), name);
        cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        REQUIRE(fd >= 0);
}

TEST(setting_the_fs_group_fails_if_the_volume_cannot_be_listed)
{
        int r = -EIO;

        create_volume_file("first");
        create_volume_file("second");
        for (int n = 0; r < 0 && n < 100; n++) {
                readdir_calls_left = n;
                readdir_has_failed = false;
                r = volume_set_fs_group(test_directory(), "4321", NULL);
                EXPECT_EQ(r, readdir_has_failed ? -EIO : 0);
                readdir_calls_left = -1;
        }
        EXPECT_EQ(r, 0);
        EXPECT_EQ(group_of("first"), (gid_t) GROUP);
        EXPECT_EQ(group_of("second"), (gid_t) GROUP);
}
