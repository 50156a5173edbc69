/* SPDX-License-Identifier: Apache-2.0 */
/* The test has its own IPC and network namespaces. */

#include "agent/shim/sysctls.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sched.h>

static void write_sysctls(const char *text) {
        cleanup_free char *path = path_join(test_directory(), "sysctls");

        REQUIRE(write_file_atomic_at(AT_FDCWD, path, text, strlen(text), 0600) == 0);
}

static void expect_sysctl_value(const char *path, const char *expected) {
        cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC);
        cleanup_free char *text = NULL;

        REQUIRE(fd >= 0 && read_stream(fd, 256, &text, NULL) >= 0);
        EXPECT_STREQ(text, expected);
}

TEST(parameters_of_both_namespaces_are_set_in_either_notation)
{
        REQUIRE(unshare(CLONE_NEWIPC | CLONE_NEWNET) == 0);
        write_sysctls("kernel.msgmax = 12345\n"
                      "net.ipv4.ip_local_port_range = 20000 30000\n"
                      "net/ipv4/conf/lo/forwarding = 1\n");
        EXPECT_EQ(sysctls_apply(test_directory(), NULL), 0);
        expect_sysctl_value("/proc/sys/kernel/msgmax", "12345\n");
        expect_sysctl_value("/proc/sys/net/ipv4/ip_local_port_range", "20000\t30000\n");
        expect_sysctl_value("/proc/sys/net/ipv4/conf/lo/forwarding", "1\n");
}

TEST(no_file_sets_nothing)
{ EXPECT_EQ(sysctls_apply(test_directory(), NULL), 0); }

TEST(a_parameter_that_cannot_be_set_is_named)
{
        static const struct {
                const char *text;
                const char *message;
        } cases[] = {
                { "kernel.no_such = 1\n",
                  "cannot set the sysctl kernel.no_such to '1': No such file or directory" },
                { "kernel.msgmax = x\n",
                  "cannot set the sysctl kernel.msgmax to 'x': Invalid argument" },
                { "kernel/msgmax\n", "'kernel/msgmax' is not a sysctl" },
        };

        REQUIRE(unshare(CLONE_NEWIPC) == 0);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;

                write_sysctls(cases[i].text);
                EXPECT(sysctls_apply(test_directory(), &error) < 0);
                EXPECT_STREQ(error.message, cases[i].message);
        }
}

TEST(a_path_that_leaves_proc_sys_is_not_followed)
{
        write_sysctls("../self/comm = x\n");
        EXPECT(sysctls_apply(test_directory(), NULL) < 0);
        write_sysctls("/../self/comm = x\n");
        EXPECT(sysctls_apply(test_directory(), NULL) < 0);
}
