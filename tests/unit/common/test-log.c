/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"
#include "tests/test.h"

#include <fcntl.h>
#include <syslog.h>

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

TEST(the_message_of_an_error_starts_with_a_capital_letter)
{
        cleanup_error Error failure = ERROR_NULL, named = ERROR_NULL;
        cleanup_free char *text = NULL;
        StderrCapture capture;

        (void) error_setf(&failure, EIO, "cannot do it");
        (void) error_setf(&named, EIO, "web.yaml: is damaged");
        setenv("JOURNAL_STREAM", "8:1", 1);
        capture = stderr_capture_start();
        log_error_message(&failure, -EIO);
        log_warning_message(&named, -EIO);
        log_error_message(NULL, -ENOENT);
        text = stderr_capture_end(&capture);
        unsetenv("JOURNAL_STREAM");
        EXPECT_STREQ(text, "<3>Cannot do it\n<4>web.yaml: is damaged\n"
                           "<3>No such file or directory\n");
}

TEST(debug_lines_are_written_at_log_level_debug_only)
{
        cleanup_free char *text = NULL;
        char expected[256];
        StderrCapture capture = stderr_capture_start();

        log_debug("dropped");
        EXPECT(!log_is_debug());
        setenv("MAINSTAY_DEBUG", "1", 1);
        log_debug("dropped as well: the environment is read once");
        log_read_environment();
        unsetenv("MAINSTAY_DEBUG");
        EXPECT(log_is_debug());
        log_debug("written");
        log_set_level(LOG_INFO);
        log_debug("dropped again");
        text = stderr_capture_end(&capture);
        format_expected_log_line("written", expected, sizeof(expected));
        EXPECT_STREQ(text, expected);
}

TEST(lines_below_the_log_level_are_dropped_with_their_message_id)
{
        cleanup_free char *text = NULL;
        char expected[256];
        StderrCapture capture = stderr_capture_start();

        log_set_level(LOG_ERR);
        log_warning("dropped");
        EXPECT_EQ(log_warning_errno(-EIO, "dropped"), -EIO);
        log_error("written");
        log_set_level(LOG_INFO);
        text = stderr_capture_end(&capture);
        format_expected_log_line("written", expected, sizeof(expected));
        EXPECT_STREQ(text, expected);
}

TEST(log_levels_have_names)
{
        EXPECT_EQ(log_level_parse("warning"), LOG_WARNING);
        EXPECT_EQ(log_level_parse("Warning"), -EINVAL);
        EXPECT_EQ(log_level_parse("notice"), -EINVAL);
        EXPECT_EQ(log_level_parse(""), -EINVAL);
        EXPECT_STREQ(log_level_name(log_level_parse("error")), "error");
        EXPECT_STREQ(log_level_name(LOG_DEBUG), "debug");
        EXPECT(!log_level_name(LOG_NOTICE));
}

TEST(a_line_that_is_too_long_is_truncated_and_stays_one_line)
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

TEST(line_breaks_in_quoted_strings_do_not_start_a_new_line)
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
