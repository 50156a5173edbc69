/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/network-attachment.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void on_attachment_done(int r, const Error *error, void *userdata) {
}

TEST(a_record_that_cannot_be_read_stays_and_counts_as_attached)
{
        const BundleConfig bundle = { .state_dir = test_directory() };
        const CniSettings settings = { 0 };
        cleanup_free char *path = path_join(test_directory(), "pods/1234");
        cleanup_close int fd = open_directory_at(AT_FDCWD, path, 0700);
        NetworkAttachment *attachment = NULL;

        REQUIRE(fd >= 0 && symlinkat("/proc/self/mem", fd, "network") == 0); /* read() gives EIO */
        REQUIRE(network_attachment_new(&bundle, &settings, "1234", on_attachment_done, NULL,
                                       &attachment) == 0);
        EXPECT_EQ(network_attachment_load(attachment), -EIO);
        EXPECT(network_attachment_is_known(attachment));
        EXPECT_EQ(faccessat(fd, "network", F_OK, AT_SYMLINK_NOFOLLOW), 0);
        REQUIRE(unlinkat(fd, "network", 0) == 0);
        REQUIRE(write_file_atomic_at(fd, "network", "{}", 2, 0600) == 0);
        EXPECT_EQ(network_attachment_load(attachment), -EBADMSG);
        EXPECT(network_attachment_is_known(attachment));
        EXPECT_EQ(faccessat(fd, "network.damaged", F_OK, 0), 0);
        network_attachment_free(attachment);
}
