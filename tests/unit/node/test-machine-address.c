/* SPDX-License-Identifier: Apache-2.0 */
/* --node-ip. */

#include "agent/node/machine-info.h"
#include "common/cleanup.h"
#include "common/text.h"
#include "tests/test.h"

/* "address,other address", or the error. */
static const char *set(const char *given) {
        static char text[512];
        MachineInfo machine = { .address = strdup("192.0.2.9") };
        cleanup_error Error error = ERROR_NULL;

        if (machine_info_set_address(&machine, given, &error) < 0)
                (void) snprintf(text, sizeof(text), "%s", strna(error.message));
        else
                (void) snprintf(text, sizeof(text), "%s,%s", strna(machine.address),
                                strna(machine.other_address));
        machine_info_done(&machine);
        return text;
}

TEST(given_address_replaces_the_discovered_one)
{
        EXPECT_STREQ(set(NULL), "192.0.2.9,");
        EXPECT_STREQ(set("0.0.0.0"), "192.0.2.9,");
        EXPECT_STREQ(set("192.0.2.1"), "192.0.2.1,");
        EXPECT_STREQ(set("2001:db8::1"), "2001:db8::1,");
}

TEST(pair_of_addresses_keeps_its_order)
{
        EXPECT_STREQ(set("192.0.2.1,2001:db8::1"), "192.0.2.1,2001:db8::1");
        EXPECT_STREQ(set("2001:db8::1,192.0.2.1"), "2001:db8::1,192.0.2.1");
}

TEST(other_lists_of_addresses_are_refused)
{
        EXPECT_STREQ(set("192.0.2"), "--node-ip: must be an IP address, not '192.0.2'");
        EXPECT_STREQ(set("192.0.2.1,"), "--node-ip: must be an IP address, not ''");
        EXPECT_STREQ(set("192.0.2.1,x"), "--node-ip: must be an IP address, not 'x'");
        EXPECT_STREQ(set("192.0.2.1,192.0.2.2"),
                     "--node-ip: must be one address, or one of each family, not "
                     "'192.0.2.1,192.0.2.2'");
        EXPECT_STREQ(set("192.0.2.1,2001:db8::1,2001:db8::2"),
                     "--node-ip: must be an IP address, not '2001:db8::1,2001:db8::2'");
        EXPECT_STREQ(set("0.0.0.0,2001:db8::1"),
                     "--node-ip: must be addresses of the node, not '0.0.0.0,2001:db8::1'");
        EXPECT_STREQ(set("192.0.2.1,::"), "--node-ip: must be addresses of the node, not "
                                          "'192.0.2.1,::'");
}
