/* SPDX-License-Identifier: Apache-2.0 */
/* mainstay.podCIDRs and podCIDR. */

#include "agent/manifest/manifest.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"
#include "common/text.h"
#include "tests/test.h"

#include <fcntl.h>

/* Returns the ranges separated by blanks, or the error without its path. */
static const char *ranges(const char *yaml) {
        static char text[512];
        cleanup_with(config_done) Config config = { 0 };
        cleanup_strv char **warnings = NULL;
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *path = path_join(test_directory(), "config.yaml"), *joined = NULL;
        const char *message;

        REQUIRE(write_file_atomic_at(AT_FDCWD, path, yaml, strlen(yaml), 0644) == 0);
        if (kubelet_config_load(path, &config, &warnings, &error) < 0) {
                message = strna(error.message);
                (void) snprintf(text, sizeof(text), "%s",
                                strncmp(message, path, strlen(path)) == 0 ? message + strlen(path)
                                                                          : message);
                return text;
        }
        joined = config.mainstay.pod_cidrs ? text_join(config.mainstay.pod_cidrs, " ") : NULL;
        (void) snprintf(text, sizeof(text), "%s", strna(joined));
        return text;
}

TEST(one_range_per_family_is_accepted)
{
        EXPECT_STREQ(ranges("{}"), "");
        EXPECT_STREQ(ranges("podCIDR: ''"), "");
        EXPECT_STREQ(ranges("mainstay: {podCIDRs: [10.1.0.0/16]}"), "10.1.0.0/16");
        EXPECT_STREQ(ranges("mainstay: {podCIDRs: ['fd00:1::/64']}"), "fd00:1::/64");
        EXPECT_STREQ(ranges("mainstay: {podCIDRs: ['fd00:1::/64', 10.1.0.0/16]}"),
                     "fd00:1::/64 10.1.0.0/16");
        EXPECT_STREQ(ranges("podCIDR: 10.1.0.0/16"), "10.1.0.0/16");
        EXPECT_STREQ(ranges("podCIDR: '10.1.0.0/16, 2001:db8::/64'"), "10.1.0.0/16 2001:db8::/64");
        EXPECT_STREQ(ranges("podCIDR: 10.1.0.0/16\nmainstay: {podCIDRs: [10.1.0.0/16]}"),
                     "10.1.0.0/16");
}

TEST(invalid_ranges_are_refused_with_their_place)
{
        static const struct {
                const char *cidr, *error;
        } cases[] = {
                { "10.1.0.0", "must be a range of addresses such as 10.189.0.0/16 or "
                              "fd12:3456:789a:1::/64, not '10.1.0.0'" },
                { "10.1.0/16", "must be a range of addresses such as 10.189.0.0/16 or "
                               "fd12:3456:789a:1::/64, not '10.1.0/16'" },
                { "10.1.0.0/", "must be a range of addresses such as 10.189.0.0/16 or "
                               "fd12:3456:789a:1::/64, not '10.1.0.0/'" },
                { "10.1.0.0/+16", "must be a range of addresses such as 10.189.0.0/16 or "
                                  "fd12:3456:789a:1::/64, not '10.1.0.0/+16'" },
                { "10.1.0.0/016", "must be a range of addresses such as 10.189.0.0/16 or "
                                  "fd12:3456:789a:1::/64, not '10.1.0.0/016'" },
                { "fd00::1::/64", "must be a range of addresses such as 10.189.0.0/16 or "
                                  "fd12:3456:789a:1::/64, not 'fd00::1::/64'" },
                { "", "must be a range of addresses such as 10.189.0.0/16 or "
                      "fd12:3456:789a:1::/64, not ''" },
                { "10.1.0.0/30",
                  "must have a prefix of 8 to 29 bits in IPv4, not 30: '10.1.0.0/30'" },
                { "10.0.0.0/7", "must have a prefix of 8 to 29 bits in IPv4, not 7: '10.0.0.0/7'" },
                { "10.0.0.0/999",
                  "must have a prefix of 8 to 29 bits in IPv4, not 999: '10.0.0.0/999'" },
                { "fd00::/128", "must have a prefix of 32 to 120 bits in IPv6, not 128: "
                                "'fd00::/128'" },
                { "fd00::/16", "must have a prefix of 32 to 120 bits in IPv6, not 16: "
                               "'fd00::/16'" },
                { "10.1.0.1/16", "must be the address of a network: bits behind the prefix of 16 "
                                 "are set in '10.1.0.1/16'" },
                { "fd00::1/64", "must be the address of a network: bits behind the prefix of 64 "
                                "are set in 'fd00::1/64'" },
                { "127.0.0.0/8", "must have addresses that pods can use, not '127.0.0.0/8'" },
                { "169.254.0.0/16", "must have addresses that pods can use, not '169.254.0.0/16'" },
                { "224.0.0.0/8", "must have addresses that pods can use, not '224.0.0.0/8'" },
                { "0.0.0.0/8", "must have addresses that pods can use, not '0.0.0.0/8'" },
                { "fe80::/64", "must have addresses that pods can use, not 'fe80::/64'" },
                { "ff02::/64", "must have addresses that pods can use, not 'ff02::/64'" },
                { "::/64", "must have addresses that pods can use, not '::/64'" },
                { "::ffff:10.0.0.0/104",
                  "must have addresses that pods can use, not '::ffff:10.0.0.0/104'" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *list = NULL, *kubelet = NULL, *expected = NULL;

                list = text_format("mainstay: {podCIDRs: ['%s']}", cases[i].cidr);
                expected = text_format(":1:23: mainstay.podCIDRs[0]: %s", cases[i].error);
                REQUIRE(list && expected);
                EXPECT_STREQ(ranges(list), expected);
                if (!cases[i].cidr[0])
                        continue;
                free(expected);
                kubelet = text_format("podCIDR: '%s'", cases[i].cidr);
                expected = text_format(":1:10: podCIDR: %s", cases[i].error);
                REQUIRE(kubelet && expected);
                EXPECT_STREQ(ranges(kubelet), expected);
        }
}

TEST(second_range_of_a_family_is_refused)
{
        EXPECT_STREQ(ranges("mainstay: {podCIDRs: [10.1.0.0/16, 10.2.0.0/16]}"),
                     ":1:36: mainstay.podCIDRs[1]: must be at most one range of each family; "
                     "'10.2.0.0/16' is one more");
        EXPECT_STREQ(ranges("mainstay: {podCIDRs: ['fd00::/64', 10.2.0.0/16, 10.3.0.0/16]}"),
                     ":1:49: mainstay.podCIDRs[2]: must be at most one range of each family; "
                     "'10.3.0.0/16' is one more");
        EXPECT_STREQ(ranges("podCIDR: fd00::/64,fd01::/64"),
                     ":1:10: podCIDR: must be at most one range of each family; 'fd01::/64' is one "
                     "more");
        EXPECT_STREQ(ranges("podCIDR: 10.2.0.0/16\nmainstay: {podCIDRs: [10.1.0.0/16]}"),
                     ":1:10: podCIDR: contradicts mainstay.podCIDRs");
}
