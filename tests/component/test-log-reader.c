/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "agent/http/log-files.h"
#include "agent/http/log-reader.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

/* The log directory of a container that does not exist. */
static char directory[128];

static void make_directory(void) {
        (void) snprintf(directory, sizeof(directory), "%s/pod/app", test_directory());
        REQUIRE(mkdir_parents_at(AT_FDCWD, directory, 0755) >= 0);
}

static void append(const char *name, const char *text) {
        cleanup_free char *path = path_join(directory, name);
        cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);

        REQUIRE(fd >= 0);
        REQUIRE(write_all(fd, text, strlen(text)) >= 0);
}

static void append_lines(const char *name, unsigned first, unsigned last) {
        char line[128];

        for (unsigned i = first; i <= last; i++) {
                (void) snprintf(line, sizeof(line), "2026-01-02T03:%02u:%02u.5Z stdout F line %u\n",
                                i / 60, i % 60, i);
                append(name, line);
        }
}

static void rotate(const char *to) {
        cleanup_free char *from = path_join(directory, "0.log");
        cleanup_free char *path = path_join(directory, to);

        REQUIRE(rename(from, path) == 0);
}

static LogReader *open_reader(LogOptions options, bool is_live) {
        cleanup_error Error error = ERROR_NULL;
        LogReader *reader = NULL;
        int r = log_reader_new(
                &(LogSpec){ .directory = directory, .is_live = is_live, .options = options },
                &reader, &error);

        if (r < 0)
                printf("%s\n", error_message(&error, r));
        REQUIRE(r >= 0);
        return reader;
}

/* Reads until no data is left. Returns the output, and the last result in 'ret_end'. */
static char *drain(LogReader *reader, ssize_t *ret_end) {
        static char text[4 * 1024 * 1024];
        size_t length = 0;
        ssize_t n;

        for (;;) {
                /* An odd size, so that lines are split at every position. */
                n = log_reader_read(reader, text + length, 37);
                if (n == -EAGAIN)
                        continue;
                if (n <= 0)
                        break;
                length += (size_t) n;
                REQUIRE(length + 64 < sizeof(text));
        }
        *ret_end = n;
        text[length] = '\0';
        return text;
}

static void expect_log(LogOptions options, const char *expected) {
        cleanup_with(log_reader_freep) LogReader *reader = open_reader(options, false);
        ssize_t end;

        EXPECT_STREQ(drain(reader, &end), expected);
        EXPECT_EQ(end, -ENODATA);
}

TEST(rotated_files_are_read_and_other_files_are_not)
{
        make_directory();
        append_lines("0.log.20260102-030405", 1, 2);
        append_lines("0.log.20260102-030406", 3, 3);
        append_lines("0.log.20251231-235959", 0, 0);
        append_lines("0.log", 4, 5);
        append_lines("1.log", 9, 9);
        append_lines("10.log", 9, 9);
        append_lines("0.log.20260102-030404.gz", 9, 9);
        append_lines("0.log.tmp", 9, 9);
        expect_log(LOG_OPTIONS_ALL, "line 0\nline 1\nline 2\nline 3\nline 4\nline 5\n");
}

TEST(files_rotated_in_one_second_keep_their_order)
{
        make_directory();
        append_lines("0.log.20260102-030405", 1, 1);
        append_lines("0.log.20260102-030405.2", 2, 2);
        append_lines("0.log.20260102-030405.10", 3, 3);
        append_lines("0.log", 4, 4);
        expect_log(LOG_OPTIONS_ALL, "line 1\nline 2\nline 3\nline 4\n");
}

TEST(tail_counts_lines_across_files)
{
        LogOptions options = LOG_OPTIONS_ALL;

        make_directory();
        append_lines("0.log.20260102-030405", 1, 3);
        append_lines("0.log.20260102-030406", 4, 4);
        append_lines("0.log", 5, 6);

        options.tail_lines = 0;
        expect_log(options, "");
        options.tail_lines = 1;
        expect_log(options, "line 6\n");
        options.tail_lines = 2;
        expect_log(options, "line 5\nline 6\n");
        options.tail_lines = 3;
        expect_log(options, "line 4\nline 5\nline 6\n");
        options.tail_lines = 5;
        expect_log(options, "line 2\nline 3\nline 4\nline 5\nline 6\n");
        options.tail_lines = 600;
        expect_log(options, "line 1\nline 2\nline 3\nline 4\nline 5\nline 6\n");
}

TEST(tail_counts_a_line_in_parts_once)
{
        LogOptions options = LOG_OPTIONS_ALL;

        make_directory();
        append_lines("0.log", 1, 1);
        append("0.log", "2026-01-02T03:04:05Z stdout P a\n2026-01-02T03:04:05Z stdout P b\n");
        append("0.log", "2026-01-02T03:04:05Z stdout F c\n2026-01-02T03:04:05Z stdout F next\n");
        options.tail_lines = 2;
        expect_log(options, "abc\nnext\n");
}

TEST(long_tail_is_found_across_blocks)
{
        LogOptions options = LOG_OPTIONS_ALL;
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out;

        make_directory();
        out = open_memstream(&text, &length);
        for (unsigned i = 0; i < 20000; i++)
                fprintf(out, "2026-01-02T03:04:05.123456789Z stderr F %u%.*s\n", i, (int) (i % 70),
                        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
        fclose(out);
        append("0.log", text);
        for (unsigned tail = 1; tail < 20000; tail = tail * 3 + 1) {
                cleanup_with(log_reader_freep) LogReader *reader = NULL;
                const char *got;
                unsigned lines = 0;
                ssize_t end;

                options.tail_lines = tail;
                reader = open_reader(options, false);
                got = drain(reader, &end);
                EXPECT_EQ(strtoul(got, NULL, 10), 20000 - tail);
                for (const char *p = strchr(got, '\n'); p; p = strchr(p + 1, '\n'))
                        lines++;
                EXPECT_EQ(lines, tail);
        }
}

TEST(lines_before_a_time_are_left_out)
{
        LogOptions options = LOG_OPTIONS_ALL;

        make_directory();
        append_lines("0.log", 1, 4);
        REQUIRE(parse_rfc3339("2026-01-02T03:00:03Z", &options.since_usec) >= 0);
        expect_log(options, "line 3\nline 4\n");
        REQUIRE(parse_rfc3339("2026-01-02T03:00:03.5Z", &options.since_usec) >= 0);
        expect_log(options, "line 3\nline 4\n");
        REQUIRE(parse_rfc3339("2026-01-02T04:00:00Z", &options.since_usec) >= 0);
        expect_log(options, "");
}

TEST(limit_truncates_at_the_byte)
{
        LogOptions options = LOG_OPTIONS_ALL;

        make_directory();
        append_lines("0.log", 1, 4);
        options.limit_bytes = 10;
        expect_log(options, "line 1\nlin");
        options.limit_bytes = 1000;
        expect_log(options, "line 1\nline 2\nline 3\nline 4\n");
}

TEST(timestamps_are_kept_on_request)
{
        LogOptions options = LOG_OPTIONS_ALL;

        make_directory();
        append_lines("0.log", 1, 1);
        options.timestamps = true;
        expect_log(options, "2026-01-02T03:00:01.5Z line 1\n");
}

TEST(invalid_record_is_skipped_and_an_incomplete_one_is_output)
{
        make_directory();
        append("0.log", "garbage\n\n");
        append_lines("0.log", 1, 1);
        append("0.log", "2026-01-02T03:04:05Z stdout F torn");
        expect_log(LOG_OPTIONS_ALL, "line 1\ntorn");
}

TEST(record_longer_than_a_block_is_complete)
{
        cleanup_free char *text = malloc(200001), *expected = NULL;

        make_directory();
        REQUIRE(text);
        memset(text, 'y', 200000);
        text[200000] = '\0';
        append("0.log", "2026-01-02T03:04:05Z stdout F ");
        append("0.log", text);
        append("0.log", "\n");
        append_lines("0.log", 2, 2);
        REQUIRE(asprintf(&expected, "%s\nline 2\n", text) >= 0);
        expect_log(LOG_OPTIONS_ALL, expected);
}

TEST(follow_continues_across_rotation)
{
        cleanup_with(log_reader_freep) LogReader *reader = NULL;
        LogOptions options = LOG_OPTIONS_ALL;
        ssize_t end;

        make_directory();
        options.follow = true;
        reader = open_reader(options, true);
        EXPECT_STREQ(drain(reader, &end), "");
        EXPECT_EQ(end, 0);
        append_lines("0.log", 1, 1);
        EXPECT_STREQ(drain(reader, &end), "line 1\n");
        append_lines("0.log", 2, 2);
        rotate("0.log.20260102-030405");
        EXPECT_STREQ(drain(reader, &end), "line 2\n");
        EXPECT_EQ(end, 0);
        append_lines("0.log", 3, 3);
        rotate("0.log.20260102-030406");
        append_lines("0.log", 4, 4);
        EXPECT_STREQ(drain(reader, &end), "line 3\nline 4\n");
        EXPECT_EQ(end, 0);
        append("0.log", "2026-01-02T03:04:05Z stdout F half");
        EXPECT_STREQ(drain(reader, &end), "");
        append("0.log", " a line\n");
        log_reader_set_ended(reader);
        EXPECT_STREQ(drain(reader, &end), "half a line\n");
        EXPECT_EQ(end, -ENODATA);
}

TEST(removed_file_is_read_to_its_end)
{
        cleanup_with(log_reader_freep) LogReader *reader = NULL;
        cleanup_free char *old = NULL;
        LogOptions options = LOG_OPTIONS_ALL;
        ssize_t end;

        make_directory();
        options.follow = true;
        append_lines("0.log", 1, 1);
        reader = open_reader(options, true);
        EXPECT_STREQ(drain(reader, &end), "line 1\n");
        append_lines("0.log", 2, 2);
        rotate("0.log.20260102-030405");
        append_lines("0.log", 3, 3);
        old = path_join(directory, "0.log.20260102-030405");
        EXPECT_EQ(unlink(old), 0);
        EXPECT_STREQ(drain(reader, &end), "line 2\nline 3\n");
}

TEST(file_removed_by_hand_does_not_repeat_old_lines)
{
        cleanup_with(log_reader_freep) LogReader *reader = NULL;
        cleanup_free char *rotated = NULL, *current = NULL;
        LogOptions options = LOG_OPTIONS_ALL;
        const struct timeval earlier[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
        ssize_t end;

        make_directory();
        options.follow = true;
        append_lines("0.log.20260102-030405", 1, 1);
        rotated = path_join(directory, "0.log.20260102-030405");
        current = path_join(directory, "0.log");
        EXPECT_EQ(utimes(rotated, earlier), 0);
        append_lines("0.log", 2, 2);
        reader = open_reader(options, true);
        EXPECT_STREQ(drain(reader, &end), "line 1\nline 2\n");
        EXPECT_EQ(unlink(current), 0);
        EXPECT_STREQ(drain(reader, &end), "");
        EXPECT_EQ(end, 0);
        append_lines("0.log", 3, 3);
        EXPECT_STREQ(drain(reader, &end), "line 3\n");
}

TEST(truncated_file_is_read_from_its_start)
{
        cleanup_with(log_reader_freep) LogReader *reader = NULL;
        cleanup_free char *path = NULL;
        LogOptions options = LOG_OPTIONS_ALL;
        ssize_t end;

        make_directory();
        options.follow = true;
        append_lines("0.log", 1, 5);
        reader = open_reader(options, true);
        (void) drain(reader, &end);
        path = path_join(directory, "0.log");
        EXPECT_EQ(truncate(path, 0), 0);
        append_lines("0.log", 6, 6);
        EXPECT_STREQ(drain(reader, &end), "line 6\n");
}

static int try_to_open(void) {
        LogReader *reader = NULL;
        int r = log_reader_new(&(LogSpec){ .directory = directory, .options = LOG_OPTIONS_ALL },
                               &reader, NULL);

        log_reader_free(reader);
        return r;
}

TEST(links_and_pipes_are_not_read)
{
        cleanup_free char *path = NULL, *other = NULL;

        make_directory();
        EXPECT_EQ(try_to_open(), -ENOENT);
        path = path_join(directory, "0.log");
        REQUIRE(symlink("/etc/passwd", path) == 0);
        EXPECT_EQ(try_to_open(), -ELOOP);
        REQUIRE(unlink(path) == 0);
        REQUIRE(mkfifo(path, 0600) == 0);
        EXPECT_EQ(try_to_open(), -EPERM);
        REQUIRE(unlink(path) == 0);
        append("other", "2026-01-02T03:04:05Z stdout F secret\n");
        other = path_join(directory, "other");
        REQUIRE(link(other, path) == 0);
        EXPECT_EQ(try_to_open(), -EPERM);
        REQUIRE(unlink(path) == 0);
        REQUIRE(mkdir(path, 0755) == 0);
        EXPECT_EQ(try_to_open(), -EPERM);
}

TEST(directory_replaced_by_a_link_is_not_followed)
{
        cleanup_free char *real = NULL;

        make_directory();
        append_lines("0.log", 1, 1);
        REQUIRE(asprintf(&real, "%s.real", directory) >= 0);
        REQUIRE(rename(directory, real) == 0);
        REQUIRE(symlink("app.real", directory) == 0);
        EXPECT(try_to_open() < 0);
}

/* Writes and rotates 'lines' lines like a shim, as fast as possible. */
static void write_and_rotate(unsigned lines) {
        int dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int fd = openat(dir_fd, "0.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
        char text[128], name[64];
        unsigned rotation = 0;

        for (unsigned i = 0; i < lines; i++) {
                int n = snprintf(text, sizeof(text), "2026-01-02T03:04:05Z stdout F %u\n", i);

                if (i % 97 == 96) {
                        (void) snprintf(name, sizeof(name), "0.log.20260102-%06u", ++rotation);
                        if (renameat(dir_fd, "0.log", dir_fd, name) < 0)
                                _exit(1);
                        close_fd(fd);
                        fd = openat(dir_fd, "0.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                                    0640);
                }
                if (write_all(fd, text, (size_t) n) < 0)
                        _exit(1);
        }
        _exit(0);
}

TEST(no_line_is_lost_or_repeated_during_rotation)
{
        enum {
                LINES = 20000 /* 206 rotations: fewer than LOG_FILES_MAX */
        };
        cleanup_with(log_reader_freep) LogReader *reader = NULL;
        LogOptions options = LOG_OPTIONS_ALL;
        char buffer[4096], line[32];
        unsigned expected = 0;
        size_t length = 0;
        int status = -1;
        pid_t pid;

        make_directory();
        options.follow = true;
        reader = open_reader(options, true);
        pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0)
                write_and_rotate(LINES);
        for (;;) {
                ssize_t n = log_reader_read(reader, buffer, sizeof(buffer));

                if (n == -ENODATA)
                        break;
                if (n == 0 && waitpid(pid, &status, WNOHANG) == pid)
                        log_reader_set_ended(reader);
                for (ssize_t i = 0; i < n; i++) {
                        line[length++] = buffer[i];
                        REQUIRE(length < sizeof(line));
                        if (buffer[i] != '\n')
                                continue;
                        line[length] = '\0';
                        length = 0;
                        if (strtoul(line, NULL, 10) != expected)
                                test_fail(__FILE__, __LINE__, line, "is not %u", expected);
                        expected = (unsigned) strtoul(line, NULL, 10) + 1;
                }
        }
        EXPECT_EQ(expected, LINES);
        EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
