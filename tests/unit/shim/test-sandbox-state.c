/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/sandbox-state.h"

#include "common/cleanup.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
        MOMENT_MSEC = 50,
};

/* Starts a process that starts another one. The first process ends after 'msec', or never if 'msec'
 * is negative. */
static pid_t start_two(int msec, pid_t *ret_grandchild) {
        int fds[2];
        pid_t child, grandchild;

        REQUIRE(pipe2(fds, O_CLOEXEC) == 0);
        child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
                grandchild = fork();
                if (grandchild == 0)
                        for (;;)
                                (void) pause();
                if (write(fds[1], &grandchild, sizeof(grandchild)) == sizeof(grandchild))
                        (void) poll(NULL, 0, msec);
                _exit(0);
        }
        REQUIRE(read(fds[0], ret_grandchild, sizeof(*ret_grandchild)) == sizeof(*ret_grandchild));
        (void) close(fds[0]);
        (void) close(fds[1]);
        return child;
}

static void end(pid_t pid) {
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
}

TEST(a_container_is_claimed_if_its_parent_is_about_to_exit)
{
        Shim shim = { 0 };
        pid_t child, grandchild;
        int status;

        REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
        child = start_two(MOMENT_MSEC, &grandchild);
        EXPECT_EQ(shim_claim_process(&shim, grandchild, &status), 1);
        end(grandchild);
        end(child);
}

TEST(a_container_is_claimed_if_its_parent_has_exited)
{
        Shim shim = { 0 };
        pid_t child, grandchild;
        int status;

        REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
        child = start_two(0, &grandchild);
        REQUIRE(waitpid(child, NULL, 0) == child);
        EXPECT_EQ(shim_claim_process(&shim, grandchild, &status), 1);
        end(grandchild);
}

TEST(a_process_that_has_been_reaped_is_claimed_with_its_status)
{
        Shim shim = { 0 };
        int status = 0;
        pid_t child = fork();

        REQUIRE(child >= 0);
        if (child == 0)
                _exit(3);
        REQUIRE(waitpid(child, &status, 0) == child);
        shim_add_unclaimed_exit(&shim, child, status);
        status = 0;
        EXPECT_EQ(shim_claim_process(&shim, child, &status), 0);
        EXPECT_EQ(WEXITSTATUS(status), 3);
        shim_drop_unclaimed_exits(&shim);
        EXPECT_EQ(shim_claim_process(&shim, child, &status), -ECHILD);
}

TEST(an_unrelated_process_is_not_claimed)
{
        Shim shim = { 0 };
        int status;

        EXPECT_EQ(shim_claim_process(&shim, getppid(), &status), -ECHILD);
}
