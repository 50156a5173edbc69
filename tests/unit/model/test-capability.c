/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/capability.h"
#include "agent/model/sysctl.h"
#include "tests/test.h"

#include <errno.h>
#include <linux/capability.h>

TEST(capabilities_are_found_with_and_without_prefix)
{
        for (int i = 0; i < N_CAPABILITIES; i++) {
                REQUIRE(capability_names[i]);
                EXPECT_EQ(capability_from_name(capability_names[i]), i);
                EXPECT_EQ(capability_from_name(capability_names[i] + 4), i);
        }
        EXPECT_EQ(capability_from_name("net_admin"), CAP_NET_ADMIN);
        EXPECT_EQ(capability_from_name("CAP_CAP_CHOWN"), -EINVAL);
        EXPECT_EQ(capability_from_name(""), -EINVAL);
        EXPECT_EQ(capability_from_name("ALL"), -EINVAL);
        EXPECT(capability_is_all("all"));
}

TEST(sysctl_names_may_have_dots_or_slashes)
{
        static const struct {
                const char *name;
                const char *dotted;
                SysctlNamespace namespace;
                bool is_safe;
        } cases[] = {
                { "net.ipv4.tcp_syncookies", "net.ipv4.tcp_syncookies", SYSCTL_OF_NETWORK, true },
                { "net/ipv4/tcp_syncookies", "net.ipv4.tcp_syncookies", SYSCTL_OF_NETWORK, true },
                { "net/ipv4/conf/eth0.1/forwarding", "net.ipv4.conf.eth0/1.forwarding",
                  SYSCTL_OF_NETWORK, false },
                { "kernel.shm_rmid_forced", "kernel.shm_rmid_forced", SYSCTL_OF_IPC, true },
                { "kernel.sem", "kernel.sem", SYSCTL_OF_IPC, false },
                { "fs.mqueue.msg_max", "fs.mqueue.msg_max", SYSCTL_OF_IPC, false },
                { "kernel.hostname", "kernel.hostname", SYSCTL_OF_NODE, false },
                { "network", "network", SYSCTL_OF_NODE, false },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                char buffer[SYSCTL_NAME_SIZE];

                EXPECT_STREQ(sysctl_dotted(cases[i].name, buffer), cases[i].dotted);
                EXPECT_EQ(sysctl_namespace(buffer), cases[i].namespace);
                EXPECT_EQ(sysctl_is_safe(buffer), cases[i].is_safe);
        }
}

TEST(only_namespaced_sysctls_can_be_allowed)
{
        EXPECT_EQ(check_sysctl_pattern("kernel.msg*", NULL), 0);
        EXPECT_EQ(check_sysctl_pattern("net.*", NULL), 0);
        EXPECT_EQ(check_sysctl_pattern("kernel.*", NULL), -EINVAL);
        EXPECT_EQ(check_sysctl_pattern("*", NULL), -EINVAL);
        EXPECT_EQ(check_sysctl_pattern("vm.swappiness", NULL), -EINVAL);
}
