/* SPDX-License-Identifier: Apache-2.0 */
#include "common/unix-socket.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

TEST(a_socket_is_connected_to_the_one_at_the_path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        cleanup_free char *directory = strdup(test_directory());
        cleanup_close int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        cleanup_close int fd = -EBADF, peer = -EBADF;
        char got[8] = "";

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", directory);
        REQUIRE(bind(listener, (const struct sockaddr *) &address, sizeof(address)) == 0);
        EXPECT_EQ(unix_connect(address.sun_path, SOCK_SEQPACKET), -ECONNREFUSED);
        REQUIRE(listen(listener, 1) == 0);
        fd = unix_connect(address.sun_path, SOCK_SEQPACKET | SOCK_NONBLOCK);
        REQUIRE(fd >= 0);
        EXPECT(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        EXPECT(fcntl(fd, F_GETFL) & O_NONBLOCK);
        peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        REQUIRE(send(fd, "hello", 5, 0) == 5);
        EXPECT_EQ(recv(peer, got, sizeof(got), 0), 5);
        EXPECT_EQ(unix_connect(address.sun_path, SOCK_STREAM), -EPROTOTYPE);
}

TEST(a_path_that_is_too_long_or_missing_is_an_error)
{
        char path[200];

        memset(path, 'x', sizeof(path));
        path[0] = '/';
        path[sizeof(path) - 1] = '\0';
        EXPECT_EQ(unix_connect(path, SOCK_STREAM), -ENAMETOOLONG);
        EXPECT_EQ(unix_connect("/no/such/socket", SOCK_STREAM), -ENOENT);
}
