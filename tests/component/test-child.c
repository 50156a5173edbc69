/* SPDX-License-Identifier: Apache-2.0 */
#include "common/child.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Copies of the callback's arguments, which remain valid after it. */
typedef struct ChildOutcome {
        sd_event *event;
        unsigned calls;
        int code, status;
        bool timed_out, succeeded;
        size_t output_length;
        char output[4096];
        char error[4096];
        char explanation[4096];
} ChildOutcome;

static void on_test_child_done(const ChildResult *result, void *userdata) {
        cleanup_error Error error = ERROR_NULL;
        ChildOutcome *seen = userdata;

        seen->calls++;
        seen->code = result->code;
        seen->status = result->status;
        seen->timed_out = result->timed_out;
        seen->succeeded = child_succeeded(result);
        seen->output_length = result->output_length;
        (void) snprintf(seen->output, sizeof(seen->output), "%s", result->output);
        (void) snprintf(seen->error, sizeof(seen->error), "%s", result->error);
        if (child_explain(result, "The helper", &error) < 0)
                (void) snprintf(seen->explanation, sizeof(seen->explanation), "%s", error.message);
        (void) sd_event_exit(seen->event, 0);
}

static int on_child_test_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        return sd_event_exit(sd_event_source_get_event(source), -ETIME);
}

static sd_event *new_child_test_loop(void) {
        sd_event *event = NULL;
        sigset_t mask;

        (void) sigemptyset(&mask);
        (void) sigaddset(&mask, SIGCHLD);
        REQUIRE(sigprocmask(SIG_BLOCK, &mask, NULL) >= 0);
        REQUIRE(sd_event_new(&event) >= 0);
        REQUIRE(sd_event_add_time_relative(event, NULL, CLOCK_BOOTTIME, 180 * USEC_PER_SEC, 0,
                                           on_child_test_deadline, NULL) >= 0);
        return event;
}

/* Runs a shell script to its end in a loop. */
static void run_test_script(const char *script, size_t output_max, uint64_t timeout_usec,
                            ChildOutcome *seen) {
        const char *argv[] = { "sh", "-c", script, NULL };
        ChildSpec spec = {
                .argv = (char *const *) (uintptr_t) argv,
                .output_max = output_max,
                .timeout_usec = timeout_usec,
        };

        *seen = (ChildOutcome){ .event = new_child_test_loop() };
        EXPECT_EQ(child_spawn(seen->event, &spec, on_test_child_done, seen, NULL, NULL), 0);
        EXPECT_EQ(sd_event_loop(seen->event), 0);
        EXPECT_EQ(seen->calls, 1);
        seen->event = sd_event_unref(seen->event);
}

TEST(the_output_and_a_successful_exit_are_reported_once)
{
        ChildOutcome seen;

        run_test_script("echo hello; echo aside >&2", 4096, 0, &seen);
        EXPECT(seen.succeeded);
        EXPECT_STREQ(seen.output, "hello\n");
        EXPECT_EQ(seen.output_length, 6);
        EXPECT_STREQ(seen.explanation, "");
}

TEST(a_failed_exit_is_reported_with_its_status)
{
        ChildOutcome seen;

        run_test_script("exit 42", 0, 0, &seen);
        EXPECT(!seen.succeeded);
        EXPECT_EQ(seen.code, CLD_EXITED);
        EXPECT_EQ(seen.status, 42);
        EXPECT_STREQ(seen.explanation, "The helper ended with status 42");
}

TEST(a_fatal_signal_is_reported)
{
        ChildOutcome seen;

        run_test_script("kill -USR1 $$", 0, 0, &seen);
        EXPECT_EQ(seen.code, CLD_KILLED);
        EXPECT_EQ(seen.status, SIGUSR1);
        EXPECT_STREQ(seen.explanation,
                     "The helper was killed by signal 10 (User defined signal 1)");
}

TEST(the_last_line_of_standard_error_is_the_explanation)
{
        ChildOutcome seen;

        run_test_script("echo first >&2; echo 'cannot do it' >&2; echo >&2; exit 1", 0, 0, &seen);
        EXPECT_STREQ(seen.error, "cannot do it");
        EXPECT_STREQ(seen.explanation, "cannot do it");
}

TEST(output_beyond_the_limit_is_dropped_and_does_not_block)
{
        ChildOutcome seen;

        run_test_script("head -c 1000000 /dev/zero | tr '\\0' x; echo end >&2", 10, 0, &seen);
        EXPECT(seen.succeeded);
        EXPECT_EQ(seen.output_length, 10);
        EXPECT_STREQ(seen.output, "xxxxxxxxxx");
        EXPECT_STREQ(seen.error, "end");
}

TEST(the_end_of_long_standard_error_is_kept)
{
        ChildOutcome seen;

        run_test_script(
                "head -c 100000 /dev/zero | tr '\\0' '\\n' >&2; echo 'the last' >&2; exit 1", 0, 0,
                &seen);
        EXPECT_STREQ(seen.error, "the last");
}

TEST(a_helper_is_killed_at_its_time_limit_and_the_message_says_so)
{
        ChildOutcome seen;

        run_test_script("exec sleep 1000", 0, 10 * USEC_PER_MSEC, &seen);
        EXPECT(seen.timed_out);
        EXPECT_EQ(seen.code, CLD_KILLED);
        EXPECT_STREQ(seen.explanation, "The helper exceeded its time limit and was killed");
}

TEST(a_grandchild_that_holds_the_pipes_is_not_waited_for)
{
        ChildOutcome seen;
        long pid;

        run_test_script("sleep 1000 & echo $!", 4096, 0, &seen);
        EXPECT(seen.succeeded);
        pid = strtol(seen.output, NULL, 10);
        REQUIRE(pid > 1);
        EXPECT_EQ(kill((pid_t) pid, SIGKILL), 0);
}

TEST(standard_input_is_empty_and_no_descriptor_leaks)
{
        cleanup_close int leak = open("/dev/null", O_RDONLY | O_CLOEXEC);
        ChildOutcome seen;

        /* Descriptors that were open before the test are ignored. */
        REQUIRE(close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) >= 0);
        run_test_script("cat; ls /proc/self/fd | tr '\\n' ' '", 4096, 0, &seen);
        EXPECT(leak >= 0);
        EXPECT_STREQ(seen.output, "0 1 2 3 "); /* 3 is the directory that ls reads */
}

TEST(blocked_and_ignored_signals_are_not_inherited)
{
        ChildOutcome seen;

        (void) signal(SIGTERM, SIG_IGN);
        run_test_script("kill -TERM $$; sleep 1000", 0, 120 * USEC_PER_SEC, &seen);
        (void) signal(SIGTERM, SIG_DFL);
        EXPECT_EQ(seen.status, SIGTERM);
        EXPECT(!seen.timed_out);
}

TEST(a_missing_program_is_named_in_the_error)
{
        const char *argv[] = { "mainstay-no-such-program", NULL };
        ChildSpec spec = { .argv = (char *const *) (uintptr_t) argv };
        cleanup_error Error error = ERROR_NULL;
        Child *child = NULL;
        ChildOutcome seen = { .event = new_child_test_loop() };

        EXPECT_EQ(child_spawn(seen.event, &spec, on_test_child_done, &seen, &child, &error),
                  -ENOENT);
        EXPECT_STREQ(error.message,
                     "cannot start 'mainstay-no-such-program': No such file or directory");
        EXPECT(!child);
        EXPECT_EQ(seen.calls, 0);
        sd_event_unref(seen.event);
}

TEST(a_child_that_is_freed_is_killed_without_a_callback)
{
        cleanup_free char *path = path_join(test_directory(), "pid"), *script = NULL, *text = NULL;
        const char *argv[] = { "sh", "-c", NULL, NULL };
        ChildSpec spec = { .argv = (char *const *) (uintptr_t) argv };
        ChildOutcome seen = { .event = new_child_test_loop() };
        Child *child = NULL;
        long pid = 0;

        REQUIRE(path && asprintf(&script, "echo $$ > %s; exec sleep 1000", path) > 0);
        argv[2] = script;
        EXPECT_EQ(child_spawn(seen.event, &spec, on_test_child_done, &seen, &child, NULL), 0);
        for (unsigned i = 0; i < 18000 && pid == 0; i++) {
                if (read_file_at(AT_FDCWD, path, 64, &text, NULL) >= 0) {
                        pid = strtol(text, NULL, 10);
                        free(TAKE_PTR(text));
                }
                EXPECT(sd_event_run(seen.event, 10 * USEC_PER_MSEC) >= 0);
        }
        REQUIRE(pid > 1);
        EXPECT(!child_free(child));
        EXPECT_EQ(kill((pid_t) pid, 0), -1);
        EXPECT_EQ(seen.calls, 0);
        sd_event_unref(seen.event);
}

/* The PID that a script wrote. */
static pid_t read_pid(const char *path) {
        cleanup_free char *text = NULL;

        for (unsigned i = 0; i < 18000; i++) {
                if (read_file_at(AT_FDCWD, path, 64, &text, NULL) >= 0 && strchr(text, '\n'))
                        return (pid_t) strtol(text, NULL, 10);
                free(TAKE_PTR(text));
                (void) poll(NULL, 0, 10);
        }
        REQUIRE(false);
        return 0;
}

/* A process traces the child until the test requests its exit, which lets the parent reap it. */
static pid_t start_tracer(pid_t pid, int told_fd) {
        pid_t tracer = fork();
        char byte;

        if (tracer == 0) {
                if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) == 0 && write(told_fd, "t", 1) == 1)
                        byte = (char) read(told_fd, &byte, 1);
                _exit(0);
        }
        REQUIRE(tracer > 0);
        return tracer;
}

static void kill_and_wait_for_zombie(pid_t pid) {
        cleanup_close int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);

        REQUIRE(pidfd >= 0 && kill(pid, SIGKILL) >= 0);
        REQUIRE(poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, 180000) == 1);
}

TEST(the_exit_of_a_traced_child_is_reported)
{
        cleanup_free char *path = path_join(test_directory(), "traced"), *script = NULL;
        const char *argv[] = { "sh", "-c", NULL, NULL };
        ChildSpec spec = { .argv = (char *const *) (uintptr_t) argv };
        ChildOutcome seen = { .event = new_child_test_loop() };
        Child *child = NULL;
        pid_t pid, tracer;
        int pair[2];
        char byte;

        REQUIRE(path && asprintf(&script, "echo $$ > %s; exec sleep 1000", path) > 0);
        argv[2] = script;
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) >= 0);
        REQUIRE(child_spawn(seen.event, &spec, on_test_child_done, &seen, &child, NULL) == 0);
        pid = read_pid(path);
        tracer = start_tracer(pid, pair[1]);
        REQUIRE(read(pair[0], &byte, 1) == 1);
        kill_and_wait_for_zombie(pid);
        for (unsigned i = 0; i < 3; i++)
                EXPECT(sd_event_run(seen.event, 10 * USEC_PER_MSEC) >= 0);
        EXPECT_EQ(seen.calls, 0); /* its parent cannot reap it yet */
        REQUIRE(write(pair[0], "e", 1) == 1);
        REQUIRE(waitpid(tracer, NULL, 0) == tracer);
        EXPECT_EQ(sd_event_loop(seen.event), 0);
        EXPECT_EQ(seen.calls, 1);
        EXPECT_EQ(seen.status, SIGKILL);
        close_fd(pair[0]);
        close_fd(pair[1]);
        sd_event_unref(seen.event);
}
