/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/server-address.h"

#include "agent/kubeclient/resource-version.h"
#include "common/cleanup.h"
#include "tests/test.h"

TEST(tls_server_name_is_requested_and_the_host_is_connected)
{
        static const struct {
                const char *server, *name, *base, *connect_to, *host;
        } cases[] = {
                { "https://10.0.0.1:6443", NULL, "https://10.0.0.1:6443", NULL, NULL },
                { "https://10.0.0.1:6443", "api.test", "https://api.test:6443",
                  "api.test:6443:10.0.0.1:6443", "Host: 10.0.0.1:6443" },
                { "https://[fd00::1]:6443/a/b", "api.test", "https://api.test:6443/a/b",
                  "api.test:6443:[fd00::1]:6443", "Host: [fd00::1]:6443" },
                { "https://node.test", "10.0.0.9", "https://10.0.0.9:443",
                  "10.0.0.9:443:node.test:443", "Host: node.test" },
                { "http://node.test", "::1", "http://[::1]:80", "[::1]:80:node.test:80",
                  "Host: node.test" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                KubeServerAddress address;

                REQUIRE(kube_server_address_init(&address, cases[i].server, cases[i].name) >= 0);
                EXPECT_STREQ(address.base, cases[i].base);
                EXPECT_STREQ(address.connect_to, cases[i].connect_to);
                EXPECT_STREQ(address.host, cases[i].host);
                kube_server_address_done(&address);
        }
}

TEST(path_must_not_contain_line_breaks)
{
        EXPECT(kube_request_path_is_valid("/api/v1/pods?watch=true&a=b%20c"));
        EXPECT(!kube_request_path_is_valid(""));
        EXPECT(!kube_request_path_is_valid("api"));
        EXPECT(!kube_request_path_is_valid("/a b"));
        EXPECT(!kube_request_path_is_valid("/a\nb"));
        EXPECT(!kube_request_path_is_valid("/a#b"));
        EXPECT(!kube_request_path_is_valid("/\xc3\xa4"));
}

TEST(resource_versions_are_compared_as_numbers)
{
        EXPECT(resource_version_compare("9", "10") < 0);
        EXPECT(resource_version_compare("10", "9") > 0);
        EXPECT_EQ(resource_version_compare("010", "10"), 0);
        EXPECT(resource_version_compare("18446744073709551616", "18446744073709551615") > 0);
        EXPECT_EQ(resource_version_compare("a", "10"), 0);
        EXPECT_EQ(resource_version_compare("10", NULL), 0);
        EXPECT_EQ(resource_version_compare("", "1"), 0);
        EXPECT_EQ(resource_version_compare("1-2", "1"), 0);
}
