/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/http/listen-address.h"

#include "common/cleanup.h"
#include "tests/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

static int listen_at_ipv4(const char *address, unsigned *ret_port) {
        struct sockaddr_in name = { .sin_family = AF_INET };
        socklen_t length = sizeof(name);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        REQUIRE(fd >= 0 && inet_pton(AF_INET, address, &name.sin_addr) == 1);
        REQUIRE(bind(fd, (struct sockaddr *) &name, sizeof(name)) == 0 && listen(fd, 1) == 0);
        REQUIRE(getsockname(fd, (struct sockaddr *) &name, &length) == 0);
        *ret_port = ntohs(name.sin_port);
        return fd;
}

TEST(a_socket_on_all_addresses_matches_the_configuration)
{
        unsigned port;
        cleanup_close int fd = listen_at_ipv4("0.0.0.0", &port);

        EXPECT_EQ(check_listen_address(fd, NULL, port, NULL), 0);
        EXPECT_EQ(check_listen_address(fd, "0.0.0.0", port, NULL), 0);
        EXPECT_EQ(check_listen_address(fd, "::", port, NULL), 0);
        EXPECT_EQ(check_listen_address(fd, "127.0.0.1", port, NULL), -EINVAL);
        EXPECT_EQ(check_listen_address(fd, "::1", port, NULL), -EINVAL);
}

TEST(another_port_or_address_is_reported)
{
        cleanup_error Error error = ERROR_NULL;
        unsigned port;
        cleanup_close int fd = listen_at_ipv4("127.0.0.1", &port);
        char expected[200];

        EXPECT_EQ(check_listen_address(fd, "127.0.0.1", port, &error), 0);
        EXPECT_EQ(check_listen_address(fd, NULL, port + 1, &error), -EINVAL);
        (void) snprintf(expected, sizeof(expected),
                        "the socket listens at port %u of ::ffff:127.0.0.1, but the configuration "
                        "has port %u of all addresses",
                        port, port + 1);
        EXPECT_STREQ(error.message, expected);
}
