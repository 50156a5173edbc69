/* SPDX-License-Identifier: Apache-2.0 */
/* A log on a disk that is full. */
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/unit/shim/log-fixture.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

static const uint64_t now = UINT64_C(1700000000000001);

static char *small_disk(const char *options) {
        char *path = path_join(test_directory(), "disk");

        REQUIRE(unshare(CLONE_NEWNS) >= 0);
        REQUIRE(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) >= 0);
        REQUIRE(mkdir(path, 0755) >= 0);
        REQUIRE(mount("tmpfs", path, "tmpfs", 0, options) >= 0);
        return path;
}

static char *read_log_on_full_disk(const char *path) {
        char *text = NULL;

        if (read_file_at(AT_FDCWD, path, MIB, &text, NULL) < 0)
                return strdup("(none)");
        return text;
}

/* Every line starts with a time and ends with a newline. */
static void expect_whole_lines(const char *text) {
        for (const char *p = text; *p;) {
                const char *end = strchr(p, '\n');

                EXPECT(end && strncmp(p, "2023-11-14T22:13:20", 19) == 0);
                p = end ? end + 1 : p + strlen(p);
        }
}

TEST(log_states_how_many_lines_a_full_disk_lost)
{
        enum {
                LINE = 1000
        };
        cleanup_free char *disk = small_disk("size=64k"), *path = path_join(disk, "0.log");
        cleanup_free char *ballast = path_join(disk, "ballast"), *text = NULL, *again = NULL;
        LogStreamBuffer stream = { .name = "stdout" };
        TestLogFile file;
        ContainerLog *log;
        char line[LINE + 1], confession[128];
        size_t lines = 0, sent = 500;

        memset(line, 'x', LINE);
        line[LINE - 1] = '\n';
        {
                cleanup_close int fd = open(ballast, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

                REQUIRE(fd >= 0 && fallocate(fd, 0, 0, 32768) >= 0);
        }
        log = open_test_log(&file, path, (LogLimits){ 0 });
        for (size_t i = 0; i < sent; i++)
                container_log_write(log, &stream, line, LINE, now);
        text = read_log_on_full_disk(path);
        expect_whole_lines(text);
        for (const char *p = text; (p = strchr(p, '\n')); p++)
                lines++;
        EXPECT(lines > 10 && lines < 40);

        REQUIRE(unlink(ballast) >= 0);
        container_log_write(log, &stream, "after\n", 6, now);
        again = read_log_on_full_disk(path);
        expect_whole_lines(again);
        (void) snprintf(confession, sizeof(confession),
                        " stdout F [mainstay: %zu bytes of this log were lost: No space left on "
                        "device]\n",
                        (sent - lines) * (LINE - 1));
        EXPECT(strstr(again, confession));
        EXPECT(strstr(again, " stdout F after\n"));
        container_log_write(log, &stream, "more\n", 5, now);
        free(TAKE_PTR(again));
        again = read_log_on_full_disk(path);
        EXPECT(strstr(strstr(again, confession) + 1, confession) == NULL);
        container_log_free(log);
        rotated_log_free(file.file);
        log_stream_buffer_done(&stream);
        REQUIRE(umount2(disk, MNT_DETACH) >= 0);
}

TEST(log_file_is_created_later_if_it_cannot_be_created)
{
        cleanup_free char *disk = small_disk("nr_inodes=3"), *path = path_join(disk, "0.log");
        cleanup_free char *first = path_join(disk, "1"), *second = path_join(disk, "2");
        cleanup_free char *text = NULL;
        LogStreamBuffer stream = { .name = "stderr" };
        TestLogFile file;
        ContainerLog *log;

        REQUIRE(close(open(first, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) >= 0);
        REQUIRE(close(open(second, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) >= 0);
        log = open_test_log(&file, path, (LogLimits){ 0 });
        container_log_write(log, &stream, "lost\n", 5, now);
        EXPECT(access(path, F_OK) < 0);
        REQUIRE(unlink(first) >= 0);
        container_log_write(log, &stream, "found\n", 6, now);
        text = read_log_on_full_disk(path);
        EXPECT_STREQ(text, "2023-11-14T22:13:20.000001000Z stderr F [mainstay: 4 bytes of this log "
                           "were lost: No space left on device]\n"
                           "2023-11-14T22:13:20.000001000Z stderr F found\n");
        container_log_free(log);
        rotated_log_free(file.file);
        log_stream_buffer_done(&stream);
        REQUIRE(umount2(disk, MNT_DETACH) >= 0);
}

TEST(rotation_on_a_full_disk_removes_the_oldest_file)
{
        cleanup_free char *disk = small_disk("size=64k"), *path = path_join(disk, "0.log");
        cleanup_free char *text = NULL;
        LogStreamBuffer stream = { .name = "stdout" };
        TestLogFile file;
        ContainerLog *log;
        struct stat st;
        char line[1000];

        memset(line, 'y', sizeof(line));
        line[sizeof(line) - 1] = '\n';
        log = open_test_log(&file, path, (LogLimits){ 16384, 3 });
        for (unsigned i = 0; i < 1000; i++)
                container_log_write(log, &stream, line, sizeof(line), now);
        container_log_write(log, &stream, "last\n", 5, now);
        text = read_log_on_full_disk(path);
        expect_whole_lines(text);
        EXPECT(strstr(text, " stdout F last\n"));
        EXPECT(!strstr(text, "lost"));
        EXPECT(stat(path, &st) >= 0 && st.st_size <= 16384);
        container_log_free(log);
        rotated_log_free(file.file);
        log_stream_buffer_done(&stream);
        REQUIRE(umount2(disk, MNT_DETACH) >= 0);
}
