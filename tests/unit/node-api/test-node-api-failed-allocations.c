/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/process/api-confine.h"

#include "common/failpoint.h"
#include "tests/test.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
        STRIDE = 13, /* there are more than a thousand allocations */
};

/* Without valid arguments these calls do nothing; an error other than EPERM shows that a call is
 * allowed. */
static const long calls[] = { SYS_read,       SYS_ioctl,          SYS_writev, SYS_sendmsg,
                              SYS_getsockopt, SYS_fcntl,          SYS_getuid, SYS_futex,
                              SYS_epoll_ctl,  SYS_accept4,        SYS_unlink, SYS_mount,
                              SYS_openat,     SYS_timerfd_gettime };

typedef struct Outcome {
        bool has_ended, has_failed;
        int confined;
        bool refused[N_ELEMENTS(calls)];
} Outcome;

static void confine_and_try(Outcome *outcome, unsigned n) {
        /* libseccomp may crash, which is accepted: the process ends in this case, too. */
        (void) signal(SIGSEGV, SIG_DFL);
        (void) close(STDERR_FILENO);
        failpoint_fail_allocation(n);
        outcome->confined = confine_api_system_calls(NULL);
        outcome->has_failed = failpoint_allocation_has_failed();
        failpoint_fail_allocation(0);
        for (size_t i = 0; outcome->confined >= 0 && i < N_ELEMENTS(calls); i++)
                outcome->refused[i] =
                        syscall(calls[i], -1, -1, -1, -1, -1, -1) < 0 && errno == EPERM;
        outcome->has_ended = true;
        __builtin_trap(); /* this needs no system call */
}

static void confine_child(Outcome *outcome, unsigned n) {
        pid_t pid;

        *outcome = (Outcome){ 0 };
        pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0)
                confine_and_try(outcome, n);
        REQUIRE(waitpid(pid, NULL, 0) == pid);
}

TEST(seccomp_filter_is_complete_or_the_process_exits)
{
        Outcome *outcome = mmap(NULL, sizeof(*outcome), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        Outcome whole;
        unsigned n = 1, count = 0;

        REQUIRE(outcome != MAP_FAILED);
        confine_child(outcome, 0);
        whole = *outcome;
        REQUIRE(whole.has_ended && whole.confined == 0 && !whole.refused[0]);
        for (;; n += STRIDE, count++) {
                confine_child(outcome, n);
                if (!outcome->has_ended || outcome->confined < 0)
                        continue;
                if (memcmp(outcome->refused, whole.refused, sizeof(whole.refused)) != 0)
                        test_fail(__FILE__, __LINE__, "filter",
                                  "is not whole with the %uth allocation failing", n);
                if (!outcome->has_failed)
                        break;
        }
        EXPECT(count > 50);
        printf("%u of %u allocations failed\n", count, n);
        (void) munmap(outcome, sizeof(*outcome));
}
