/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/http/client-limits.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>

enum {
        SERVICE = 40001,
        ONE = 40002,
        OTHER = 40003,
};

/* Returns how many clients of the user are served before one must wait. */
static unsigned serve_all(ClientLimits *limits, uid_t uid) {
        unsigned n = 0;

        for (; client_limits_allow(limits, uid); n++)
                client_limits_add(limits, uid);
        return n;
}

TEST(each_user_has_a_share_and_root_has_reserved_connections)
{
        ClientLimits limits = { .service_uid = SERVICE };

        EXPECT_EQ(serve_all(&limits, ONE), 16);
        EXPECT_EQ(serve_all(&limits, OTHER), 16);
        EXPECT_EQ(serve_all(&limits, SERVICE), 0);
        EXPECT_EQ(serve_all(&limits, 0), 8);
        EXPECT_EQ(serve_all(&limits, 0), 0);
        client_limits_remove(&limits, ONE);
        EXPECT_EQ(serve_all(&limits, OTHER), 0);
        EXPECT_EQ(serve_all(&limits, ONE), 1);
}

TEST(service_user_has_all_connections_except_those_of_root)
{
        ClientLimits limits = { .service_uid = SERVICE };

        EXPECT_EQ(serve_all(&limits, SERVICE), 32);
        EXPECT_EQ(serve_all(&limits, 0), 8);
}

TEST(waiting_clients_are_served_in_order_within_the_limits_of_their_users)
{
        ClientLimits limits = { 0 };

        (void) serve_all(&limits, ONE);
        EXPECT_EQ(client_limits_next(&limits), -EAGAIN);
        EXPECT(client_limits_wait_take(&limits, ONE, 101));
        EXPECT(client_limits_wait_take(&limits, OTHER, 102));
        EXPECT(client_limits_wait_take(&limits, ONE, 103));
        EXPECT_EQ(client_limits_next(&limits), 102);
        EXPECT_EQ(client_limits_next(&limits), -EAGAIN);
        client_limits_remove(&limits, ONE);
        EXPECT_EQ(client_limits_next(&limits), 101);
        client_limits_add(&limits, ONE);
        EXPECT_EQ(client_limits_next(&limits), -EAGAIN);
        EXPECT_EQ(limits.n_waiting, 1);
}

TEST(number_of_waiting_clients_per_user_is_limited)
{
        ClientLimits limits = { 0 };
        unsigned n = 0;
        int fd;

        while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0 &&
               client_limits_wait_take(&limits, ONE, fd))
                n++;
        EXPECT_EQ(n, 32);
        EXPECT(client_limits_wait_take(&limits, OTHER, fd));
        client_limits_done(&limits);
        EXPECT(fcntl(fd, F_GETFD) < 0);
}
