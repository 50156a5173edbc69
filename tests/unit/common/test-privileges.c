/* SPDX-License-Identifier: Apache-2.0 */
#include "common/privileges.h"

#include "common/macros.h"
#include "tests/test.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t permitted(void) {
        struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };

        if (syscall(SYS_capget, &header, data) < 0 || data[0].permitted != data[0].effective)
                return UINT64_MAX;
        return (uint64_t) data[1].permitted << 32 | data[0].permitted;
}

/* Runs in a separate process, whose exit code is its return value. */
static int run_in_child(int (*function)(void)) {
        int status = -1;
        pid_t pid = fork();

        if (pid == 0)
                _exit(function());
        REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        return WEXITSTATUS(status);
}

static int keep_one(void) {
        const uint64_t keep = UINT64_C(1) << CAP_CHOWN | UINT64_C(1) << CAP_BPF;
        uint64_t before = permitted();

        if (privileges_keep_capabilities(keep) < 0)
                return 1;
        if (permitted() != (before & keep) || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
                return 2;
        return privileges_keep_capabilities(0) < 0 || permitted() != 0 ? 3 : 0;
}

/* The ID below becomes 0 if only its low 16 bits are kept. */
static int become_large_ids(void) {
        const uid_t id = 0x10000;

        if (geteuid() != 0)
                return 0;
        privileges_drop_bounding_set();
        if (prctl(PR_CAPBSET_READ, CAP_CHOWN, 0, 0, 0) != 0)
                return 1;
        if (privileges_set_ids(id, id) < 0)
                return errno == EINVAL ? 0 : 2;
        return getuid() != id || geteuid() != id || getgid() != id || getgroups(0, NULL) != 0 ? 3
                                                                                              : 0;
}

static int hide_memory(void) {
        struct rlimit before, limit;

        if (getrlimit(RLIMIT_CORE, &before) < 0)
                return 1;
        privileges_hide_memory();
        if (getrlimit(RLIMIT_CORE, &limit) < 0 || limit.rlim_max != before.rlim_max ||
            limit.rlim_cur != MIN(before.rlim_max, 1))
                return 2;
        return prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != HAS_SANITIZER ? 3 : 0;
}

/* A child inherits the limit, like a container, and may raise it again. */
static int forbid_and_permit_cores(void) {
        struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
        int status = 0;
        pid_t pid;

        privileges_forbid_cores();
        if (prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) != 1)
                return 1;
        pid = fork();
        if (pid == 0)
                abort();
        if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) || WCOREDUMP(status))
                return 2;
        if (getrlimit(RLIMIT_CORE, &limit) < 0)
                return 3;
        limit.rlim_cur = limit.rlim_max;
        return setrlimit(RLIMIT_CORE, &limit) < 0 ? 4 : 0;
}

TEST(hidden_memory_is_excluded_from_core_dumps_and_tracing)
{ EXPECT_EQ(run_in_child(hide_memory), 0); }

TEST(a_program_without_core_dumps_can_enable_them)
{ EXPECT_EQ(run_in_child(forbid_and_permit_cores), 0); }

TEST(only_the_requested_capabilities_remain)
{ EXPECT_EQ(run_in_child(keep_one), 0); }

TEST(ids_of_more_than_16_bits_are_not_truncated)
{ EXPECT_EQ(run_in_child(become_large_ids), 0); }
