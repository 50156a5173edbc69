/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/http/log-process.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/inotify.h>

static void append_log_line(const char *directory, const char *text) {
        cleanup_free char *path = path_join(directory, "0.log");
        cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);

        REQUIRE(fd >= 0);
        REQUIRE(dprintf(fd, "2026-01-02T03:04:05.6Z stdout F %s\n", text) > 0);
}

/* Reads until the text has the expected length. */
static void expect_log_text(int fd, const char *expected) {
        uint64_t end = now_boottime_usec() + 180 * USEC_PER_SEC;
        char text[256] = "";
        size_t length = 0;

        while (length < strlen(expected) && now_boottime_usec() < end) {
                ssize_t n = read(fd, text + length, sizeof(text) - 1 - length);

                length += n > 0 ? (size_t) n : 0;
                if (n <= 0)
                        (void) usleep(20000);
        }
        EXPECT_STREQ(text, expected);
}

/* Uses up all inotify instances of the user, but only in this process's user namespace. */
static void use_up_inotify_instances(void) {
        cleanup_close int fd = -EBADF;

        REQUIRE(unshare(CLONE_NEWUSER) == 0);
        fd = open("/proc/sys/user/max_inotify_instances", O_WRONLY | O_CLOEXEC);
        REQUIRE(fd >= 0 && write_all(fd, "0", 1) >= 0);
        REQUIRE(inotify_init1(IN_CLOEXEC) < 0 && errno == EMFILE);
}

TEST(log_is_followed_without_an_inotify_instance)
{
        LogOptions options = LOG_OPTIONS_ALL;
        LogProcesses processes = { 0 };
        cleanup_free char *directory = path_join(test_directory(), "pod/app");
        cleanup_close int fd = -EBADF;
        sigset_t child;

        REQUIRE(sigemptyset(&child) == 0 && sigaddset(&child, SIGCHLD) == 0);
        REQUIRE(sigprocmask(SIG_BLOCK, &child, NULL) == 0);
        REQUIRE(sd_event_new(&processes.event) >= 0);
        REQUIRE(mkdir_parents_at(AT_FDCWD, directory, 0755) >= 0);
        append_log_line(directory, "one");
        use_up_inotify_instances();
        options.follow = true;
        fd = log_process_start(
                &processes,
                &(LogSpec){ .directory = directory, .is_live = true, .options = options }, NULL);
        REQUIRE(fd >= 0);
        expect_log_text(fd, "one\n");
        append_log_line(directory, "two");
        expect_log_text(fd, "two\n");
        log_processes_done(&processes);
        sd_event_unref(processes.event);
}
