/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"
#include "tests/test.h"

#include <fcntl.h>

typedef struct StderrCapture {
        int saved_fd;
        int read_fd;
} StderrCapture;

static StderrCapture stderr_capture_start(void) {
        StderrCapture capture = { .saved_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) };
        int pipes[2];

        REQUIRE(capture.saved_fd >= 0);
        REQUIRE(pipe2(pipes, O_CLOEXEC) >= 0);
        REQUIRE(dup2(pipes[1], STDERR_FILENO) >= 0);
        close_fd(pipes[1]);
        capture.read_fd = pipes[0];
        return capture;
}

static char *stderr_capture_end(StderrCapture *capture) {
        char *text = NULL;

        REQUIRE(dup2(capture->saved_fd, STDERR_FILENO) >= 0);
        close_fd(capture->saved_fd);
        REQUIRE(read_stream(capture->read_fd, 64 * KIB, &text, NULL) >= 0);
        close_fd(capture->read_fd);
        return text;
}

static void format_expected_log_line(const char *message, char *ret, size_t size) {
        (void) snprintf(ret, size, "%s: %s\n", program_invocation_short_name, message);
}

TEST(a_line_starts_with_the_name_of_the_program)
{
        cleanup_free char *text = NULL;
        char expected[256];
        StderrCapture capture;

        unsetenv("JOURNAL_STREAM");
        capture = stderr_capture_start();
        log_info("Pod '%s' is running", "web");
        text = stderr_capture_end(&capture);
        format_expected_log_line("Pod 'web' is running", expected, sizeof(expected));
        EXPECT_STREQ(text, expected);
}

TEST(the_journal_gets_the_priority_as_prefix)
{
        cleanup_free char *text = NULL;
        StderrCapture capture;

        setenv("JOURNAL_STREAM", "8:1", 1);
        capture = stderr_capture_start();
        log_error("a");
        log_warning("b");
        log_info("c");
        text = stderr_capture_end(&capture);
        unsetenv("JOURNAL_STREAM");
        EXPECT_STREQ(text, "<3>a\n<4>b\n<6>c\n");
}

TEST(a_failure_is_logged_and_returned_in_one_line)
{
        cleanup_free char *text = NULL;
        char expected[256];
        StderrCapture capture = stderr_capture_start();

        EXPECT_EQ(log_error_errno(-ENOENT, "Cannot read '%s'", "x"), -ENOENT);
        text = stderr_capture_end(&capture);
        format_expected_log_line("Cannot read 'x': No such file or directory", expected,
                                 sizeof(expected));
        EXPECT_STREQ(text, expected);
}

TEST(debug_lines_are_printed_only_on_request)
{
        cleanup_free char *text = NULL;
        char expected[256];
        StderrCapture capture = stderr_capture_start();

        unsetenv("MAINSTAY_DEBUG");
        log_debug("unheard");
        setenv("MAINSTAY_DEBUG", "1", 1);
        log_debug("heard");
        unsetenv("MAINSTAY_DEBUG");
        text = stderr_capture_end(&capture);
        format_expected_log_line("heard", expected, sizeof(expected));
        EXPECT_STREQ(text, expected);
}

TEST(a_line_that_is_too_long_is_cut_and_still_one_line)
{
        cleanup_free char *text = NULL, *message = malloc(10000);
        StderrCapture capture;
        size_t n;

        REQUIRE(message);
        memset(message, 'x', 9999);
        message[9999] = '\0';
        capture = stderr_capture_start();
        log_info("%s", message);
        EXPECT_EQ(log_error_errno(-EIO, "%s", message), -EIO);
        text = stderr_capture_end(&capture);
        n = strlen(text);
        EXPECT(n > 4096 && n <= 8192);
        EXPECT_EQ(text[n - 1], '\n');
        EXPECT(strchr(text, '\n') != text + n - 1);
}

TEST(line_breaks_in_quoted_strings_start_no_line)
{
        cleanup_free char *text = NULL;
        char expected[256];
        StderrCapture capture = stderr_capture_start();

        log_warning("Probe failed: %s", "no\n<3>All pods are gone\033[2J");
        text = stderr_capture_end(&capture);
        format_expected_log_line("Probe failed: no <3>All pods are gone?[2J", expected,
                                 sizeof(expected));
        EXPECT_STREQ(text, expected);
}
