/* SPDX-License-Identifier: Apache-2.0 */
/* Which interfaces keep following routers when the node forwards IPv6. */

#include "agent/shim/router-advertisements.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"
#include "tests/test.h"

#include <fcntl.h>

static void write_sysctl(const char *interface, const char *name, const char *value) {
        cleanup_free char *directory = path_join(test_directory(), interface);
        cleanup_free char *path = directory ? path_join(directory, name) : NULL;

        REQUIRE(path && mkdir_parents_at(AT_FDCWD, directory, 0755) >= 0);
        REQUIRE(write_file_atomic_at(AT_FDCWD, path, value, strlen(value), 0644) == 0);
}

static void add_interface(const char *name, const char *forwarding, const char *accept_ra) {
        write_sysctl(name, "forwarding", forwarding);
        write_sysctl(name, "accept_ra", accept_ra);
}

static void expect_accept_ra(const char *interface, char expected) {
        cleanup_free char *path = text_format("%s/%s/accept_ra", test_directory(), interface);
        cleanup_free char *text = NULL;

        REQUIRE(read_file_at(AT_FDCWD, path, 16, &text, NULL) >= 0);
        EXPECT_EQ(text[0], expected);
}

TEST(interfaces_that_follow_routers_keep_following_them)
{
        add_interface("all", "0\n", "1\n");
        add_interface("default", "0\n", "1\n");
        add_interface("eth0", "0\n", "1\n");
        add_interface("eth0.100", "0\n", "1\n");
        add_interface("of-networkd", "0\n", "0\n");
        add_interface("in-any-case", "0\n", "2\n");
        add_interface("router", "1\n", "1\n");
        keep_router_advertisements(test_directory());
        expect_accept_ra("all", '1');
        expect_accept_ra("default", '2');
        expect_accept_ra("eth0", '2');
        expect_accept_ra("eth0.100", '2');
        expect_accept_ra("of-networkd", '0');
        expect_accept_ra("in-any-case", '2');
        expect_accept_ra("router", '1');
}

TEST(node_that_already_forwards_is_not_changed)
{
        add_interface("all", "1\n", "1\n");
        add_interface("eth0", "0\n", "1\n");
        keep_router_advertisements(test_directory());
        expect_accept_ra("eth0", '1');
}

TEST(node_without_ipv6_is_left_alone)
{
        cleanup_free char *nowhere = path_join(test_directory(), "nowhere");

        keep_router_advertisements(nowhere);
}
