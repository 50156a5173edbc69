/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/unit/shim/log-fixture.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#define STAMP "2023-11-14T22:13:20.000001000Z"
enum {
        HEAD = sizeof(STAMP " stdout F ") - 1
};
static const uint64_t now = UINT64_C(1700000000000001);

typedef struct LogFixture {
        char *path;
        TestLogFile file;
        ContainerLog *log;
        LogStreamBuffer out, err;
} LogFixture;

static void log_fixture_init(LogFixture *f, LogLimits limits) {
        *f = (LogFixture){ .out.name = "stdout", .err.name = "stderr" };
        f->path = path_join(test_directory(), "0.log");
        f->log = open_test_log(&f->file, f->path, limits);
}

static void log_fixture_done(LogFixture *f) {
        container_log_free(f->log);
        rotated_log_free(f->file.file);
        log_stream_buffer_done(&f->out);
        log_stream_buffer_done(&f->err);
        free(f->path);
}

static void write_test_output(LogFixture *f, const char *text) {
        container_log_write(f->log, &f->out, text, strlen(text), now);
}

static char *read_test_log(const char *path) {
        char *text = NULL;

        if (read_file_at(AT_FDCWD, path, 64 * MIB, &text, NULL) < 0)
                return strdup("(none)");
        return text;
}

static void expect_contents(const LogFixture *f, const char *expected) {
        cleanup_free char *text = read_test_log(f->path);

        EXPECT_STREQ(text, expected);
}

static size_t count_test_log_files(void) {
        cleanup_closedir DIR *dir = opendir(test_directory());
        size_t n = 0;

        REQUIRE(dir);
        for (struct dirent *entry; (entry = readdir(dir));)
                n += entry->d_name[0] != '.';
        return n;
}

TEST(lines_are_in_the_cri_format)
{
        struct stat st;
        LogFixture f;

        log_fixture_init(&f, (LogLimits){ 0 });
        write_test_output(&f, "one\ntwo\n\n");
        container_log_write(f.log, &f.err, "bad\xff\0byte\r\n", 11, now + 1);
        REQUIRE(stat(f.path, &st) >= 0);
        EXPECT_EQ(st.st_mode & 07777, 0640);
        {
                cleanup_free char *text = NULL;
                size_t length = 0;
                static const char expected[] =
                        STAMP " stdout F one\n" STAMP " stdout F two\n" STAMP " stdout F \n"
                              "2023-11-14T22:13:20.000002000Z stderr F bad\xff\0byte\r\n";

                REQUIRE(read_file_at(AT_FDCWD, f.path, MIB, &text, &length) >= 0);
                EXPECT_EQ(length, sizeof(expected) - 1);
                EXPECT(memcmp(text, expected, length) == 0);
        }
        log_fixture_done(&f);
}

TEST(a_line_may_arrive_in_pieces)
{
        LogFixture f;

        log_fixture_init(&f, (LogLimits){ 0 });
        write_test_output(&f, "good");
        container_log_write(f.log, &f.err, "other\n", 6, now);
        expect_contents(&f, STAMP " stderr F other\n");
        write_test_output(&f, " bye\nwor");
        write_test_output(&f, "l");
        write_test_output(&f, "d\n");
        expect_contents(&f, STAMP " stderr F other\n" STAMP " stdout F good bye\n" STAMP
                                  " stdout F world\n");
        EXPECT(!f.out.carry.data);
        log_fixture_done(&f);
}

TEST(output_that_ends_without_a_newline_is_a_partial_line)
{
        LogFixture f;

        log_fixture_init(&f, (LogLimits){ 0 });
        container_log_end_line(f.log, &f.out, now);
        expect_contents(&f, "");
        write_test_output(&f, "prompt> ");
        container_log_end_line(f.log, &f.out, now);
        container_log_end_line(f.log, &f.out, now);
        expect_contents(&f, STAMP " stdout P prompt> \n");
        log_fixture_done(&f);
}

/* Sizes around the limit, whole and byte by byte: the resulting lines are the same. */
TEST(a_long_line_is_cut_at_16_kib)
{
        static const size_t sizes[] = {
                LOG_LINE_MAX - 1,       LOG_LINE_MAX,       LOG_LINE_MAX + 1,
                2UL * LOG_LINE_MAX - 1, 2UL * LOG_LINE_MAX, 2UL * LOG_LINE_MAX + 1,
                3UL * LOG_LINE_MAX + 5,
        };
        static const size_t steps[] = { 1000000, 4096, LOG_LINE_MAX, 777 };

        for (size_t i = 0; i < N_ELEMENTS(sizes) * N_ELEMENTS(steps); i++) {
                size_t size = sizes[i % N_ELEMENTS(sizes)], step = steps[i / N_ELEMENTS(sizes)];
                cleanup_free char *line = malloc(size + 2), *text = NULL, *joined = NULL;
                size_t parts = 0, n = 0;
                LogFixture f;

                REQUIRE(line);
                for (size_t j = 0; j < size; j++)
                        line[j] = (char) ('a' + j % 26);
                line[size] = '\n';
                line[size + 1] = '\0';
                log_fixture_init(&f, (LogLimits){ 0 });
                for (size_t at = 0; at < size + 1; at += step)
                        container_log_write(f.log, &f.out, line + at, MIN(step, size + 1 - at),
                                            now);
                text = read_test_log(f.path);
                joined = calloc(1, size + 2);
                REQUIRE(joined);
                for (char *p = text; *p;) {
                        char *end = strchrnul(p, '\n');

                        EXPECT(end - p <= HEAD + LOG_LINE_MAX);
                        parts += p[HEAD - 2] == 'P';
                        memcpy(joined + n, p + HEAD, (size_t) (end - p) - HEAD);
                        n += (size_t) (end - p) - HEAD;
                        if (p[HEAD - 2] == 'F')
                                joined[n++] = '\n';
                        p = end + 1;
                }
                EXPECT_EQ(parts, (size - 1) / LOG_LINE_MAX);
                EXPECT_STREQ(joined, line);
                REQUIRE(unlink(f.path) >= 0);
                log_fixture_done(&f);
        }
}

TEST(a_file_is_rotated_before_it_exceeds_its_limit)
{
        cleanup_free char *rotated = NULL, *text = NULL;
        struct stat st;
        LogFixture f;

        /* Space for exactly three lines of ten bytes. */
        log_fixture_init(&f, (LogLimits){ 3UL * (HEAD + 11), 3 });
        write_test_output(&f, "0123456789\n0123456789\n0123456789\n");
        EXPECT_EQ(count_test_log_files(), 1);
        write_test_output(&f, "x\n");
        EXPECT_EQ(count_test_log_files(), 2);
        expect_contents(&f, STAMP " stdout F x\n");
        rotated = path_join(test_directory(), "0.log.20231114-221320");
        text = read_test_log(rotated);
        EXPECT_EQ(strlen(text), 3UL * (HEAD + 11));
        EXPECT(stat(f.path, &st) >= 0);
        EXPECT_EQ(st.st_mode & 07777, 0640);
        log_fixture_done(&f);
}

TEST(rotated_files_have_unique_names_and_the_oldest_are_removed)
{
        LogFixture f;

        log_fixture_init(&f, (LogLimits){ HEAD + 11, 3 });
        for (unsigned i = 0; i < 20; i++) {
                char line[16];

                (void) snprintf(line, sizeof(line), "%010u\n", i);
                write_test_output(&f, line);
                EXPECT(count_test_log_files() <= 3);
        }
        expect_contents(&f, STAMP " stdout F 0000000019\n");
        {
                cleanup_free char *a = path_join(test_directory(), "0.log.20231114-221320.000018");
                cleanup_free char *text = read_test_log(a);

                EXPECT_STREQ(text, STAMP " stdout F 0000000018\n");
        }
        EXPECT_EQ(count_test_log_files(), 3);
        log_fixture_done(&f);
}

TEST(lines_and_rotated_files_have_times_after_2038)
{
        const uint64_t later = UINT64_C(2524607999999999);
        cleanup_free char *rotated = path_join(test_directory(), "0.log.20500101-000000");
        cleanup_free char *text = NULL;
        LogFixture f;

        log_fixture_init(&f, (LogLimits){ HEAD + 11, 3 });
        container_log_write(f.log, &f.out, "0000000001\n", 11, later);
        container_log_write(f.log, &f.out, "0000000002\n", 11, later + 2);
        expect_contents(&f, "2050-01-01T00:00:00.000001000Z stdout F 0000000002\n");
        log_fixture_done(&f);
        text = read_test_log(rotated);
        EXPECT_STREQ(text, "2049-12-31T23:59:59.999999000Z stdout F 0000000001\n");
}

TEST(many_lines_at_once_never_exceed_the_limit)
{
        enum {
                LINES = 5000,
                LIMIT = 10000
        };
        cleanup_free char *text = NULL;
        size_t length = 0;
        LogFixture f;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out);
        for (unsigned i = 0; i < LINES; i++)
                (void) fprintf(
                        out, "%.*s\n", (int) (i % 90),
                        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
        REQUIRE(fclose(out) == 0);
        log_fixture_init(&f, (LogLimits){ LIMIT, LINES });
        container_log_write(f.log, &f.out, text, length, now);
        {
                cleanup_closedir DIR *dir = opendir(test_directory());
                uint64_t total = 0;
                struct stat st;

                REQUIRE(dir);
                for (struct dirent *entry; (entry = readdir(dir));) {
                        if (entry->d_name[0] == '.')
                                continue;
                        REQUIRE(fstatat(dirfd(dir), entry->d_name, &st, 0) >= 0);
                        EXPECT(st.st_size <= LIMIT);
                        total += (uint64_t) st.st_size;
                }
                EXPECT_EQ(total, length + (size_t) LINES * HEAD);
        }
        log_fixture_done(&f);
}

TEST(a_line_larger_than_the_limit_gets_a_separate_file)
{
        LogFixture f;

        log_fixture_init(&f, (LogLimits){ 50, 4 });
        write_test_output(&f, "a line that is larger than the limit of fifty bytes\nb\n");
        expect_contents(&f, STAMP " stdout F b\n");
        EXPECT_EQ(count_test_log_files(), 2);
        log_fixture_done(&f);
}

static int open_log_without_rotation(void *userdata, LogRequest request, uint64_t realtime_usec,
                                     OpenedLog *ret) {
        return request == LOG_REQUEST_ROTATE
                       ? -ENOSPC
                       : open_test_log_file(userdata, request, realtime_usec, ret);
}

TEST(a_file_that_cannot_be_rotated_gets_the_lines_that_fit)
{
        static const LogLimits limits = { 700, 3 };
        cleanup_free char *text = NULL;
        char long_line[1000 + 2];
        LogFixture f;

        log_fixture_init(&f, limits);
        container_log_free(f.log);
        REQUIRE(container_log_new(-EBADF, limits,
                                  &(LogOpener){ open_log_without_rotation, &f.file }, &f.log) == 0);
        (void) snprintf(long_line, sizeof(long_line), "%01000d\n", 0);
        write_test_output(&f, "first\n");
        write_test_output(&f, long_line);
        write_test_output(&f, "second\n");
        text = read_test_log(f.path);
        EXPECT(strlen(text) <= limits.max_size);
        EXPECT(strstr(text, "[mainstay: 1000 bytes of this log were lost: "));
        EXPECT(strstr(text, "F second\n"));
        EXPECT_EQ(count_test_log_files(), 1);
        log_fixture_done(&f);
}

TEST(a_log_is_continued_after_reopening)
{
        LogFixture f;

        log_fixture_init(&f, (LogLimits){ 2UL * (HEAD + 4), 3 });
        write_test_output(&f, "one\n");
        log_fixture_done(&f);
        log_fixture_init(&f, (LogLimits){ 2UL * (HEAD + 4), 3 });
        write_test_output(&f, "two\n");
        expect_contents(&f, STAMP " stdout F one\n" STAMP " stdout F two\n");
        write_test_output(&f, "3\n");
        expect_contents(&f, STAMP " stdout F 3\n");
        log_fixture_done(&f);
}

TEST(a_log_path_that_is_not_a_regular_file_is_refused)
{
        cleanup_free char *path = path_join(test_directory(), "0.log");
        cleanup_free char *target = path_join(test_directory(), "target");
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(rotated_log_freep) RotatedLog *file = NULL;
        RotatedLog *none = NULL;
        OpenedLog opened = { .fd = -EBADF };

        REQUIRE(rotated_log_new(path, &file, NULL) == 0);
        REQUIRE(symlink(target, path) >= 0);
        EXPECT_EQ(rotated_log_open(file, &opened), -ELOOP);
        REQUIRE(unlink(path) >= 0);
        REQUIRE(mkfifo(path, 0600) >= 0);
        EXPECT(rotated_log_open(file, &opened) < 0);
        REQUIRE(unlink(path) >= 0);
        REQUIRE(mkdir(path, 0700) >= 0);
        EXPECT_EQ(rotated_log_open(file, &opened), -EISDIR);
        EXPECT_EQ(opened.fd, -EBADF);
        EXPECT_EQ(rotated_log_new("/no/such/directory/x", &none, &error), -ENOENT);
        EXPECT(strstr(error.message, "cannot open the log '"));
        EXPECT_EQ(rotated_log_new("relative", &none, NULL), -EINVAL);
        EXPECT(!none);
}
