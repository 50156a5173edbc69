/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/report-store.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
        ROOM = 1024 * 1024
};

static int make_directory(char *path) {
        int fd = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

        EXPECT(fd >= 0);
        return fd;
}

static ReportQueue *load(int fd) {
        ReportQueue *queue = report_queue_new(ROOM);

        EXPECT_EQ(report_store_load(fd, queue), 0);
        return queue;
}

TEST(what_waits_outlives_the_agent_in_its_order)
{
        char path[] = "/tmp/mainstay-report-XXXXXX";
        cleanup_close int fd = make_directory(path);
        cleanup_with(report_queue_freep) ReportQueue *queue = report_queue_new(12), *loaded = NULL;
        cleanup_free char *text = NULL;
        uint64_t dropped = 0;

        (void) report_queue_put(queue, "z", REPORT_STATUS_KEY, "{0}");
        (void) report_queue_put(queue, "web", "e1", "{1}");
        (void) report_queue_put(queue, "db", REPORT_STATUS_KEY, "{2}");
        (void) report_queue_put(queue, "web", REPORT_STATUS_KEY, "{3}");
        EXPECT_EQ(report_store_save(fd, queue, &dropped), 0);
        loaded = load(fd);
        EXPECT_EQ(report_queue_dropped(loaded), 1);
        text = report_queue_take(loaded, ROOM);
        EXPECT_STREQ(text, "{1}\n{2}\n{3}\n");
        report_queue_sent(loaded);
        EXPECT_EQ(report_store_save(fd, loaded, &dropped), 0);
        EXPECT_EQ(faccessat(fd, "web", F_OK, 0), -1);
        (void) remove_tree_at(AT_FDCWD, path);
}

TEST(a_damaged_file_is_set_aside_and_the_others_are_read)
{
        char path[] = "/tmp/mainstay-report-XXXXXX";
        cleanup_close int fd = make_directory(path);
        cleanup_with(report_queue_freep) ReportQueue *queue = report_queue_new(ROOM),
                                                     *loaded = NULL;
        uint64_t dropped = 0;

        (void) report_queue_put(queue, "web", REPORT_STATUS_KEY, "{1}");
        (void) report_queue_put(queue, "db", REPORT_STATUS_KEY, "{2}");
        EXPECT_EQ(report_store_save(fd, queue, &dropped), 0);
        EXPECT_EQ(write_file_atomic_at(fd, "db", "1 status {", 10, 0600), 0);
        loaded = load(fd);
        EXPECT_EQ(report_queue_length(loaded), 1);
        EXPECT_EQ(faccessat(fd, "db.damaged", F_OK, 0), 0);
        (void) remove_tree_at(AT_FDCWD, path);
}

TEST(only_the_file_of_what_has_changed_is_written)
{
        char path[] = "/tmp/mainstay-report-XXXXXX";
        cleanup_close int fd = make_directory(path);
        cleanup_with(report_queue_freep) ReportQueue *queue = report_queue_new(ROOM);
        struct stat before, after;
        uint64_t dropped = 0;

        (void) report_queue_put(queue, "web", REPORT_STATUS_KEY, "{1}");
        (void) report_queue_put(queue, "db", REPORT_STATUS_KEY, "{2}");
        EXPECT_EQ(report_store_save(fd, queue, &dropped), 0);
        EXPECT_EQ(fstatat(fd, "web", &before, 0), 0);
        EXPECT_EQ(report_queue_put(queue, "web", REPORT_STATUS_KEY, "{1}"), 0);
        (void) report_queue_put(queue, "db", REPORT_STATUS_KEY, "{3}");
        EXPECT_EQ(report_store_save(fd, queue, &dropped), 0);
        EXPECT_EQ(fstatat(fd, "web", &after, 0), 0);
        EXPECT_EQ(before.st_ino, after.st_ino);
        EXPECT_EQ(faccessat(fd, ".dropped", F_OK, 0), -1);
        (void) remove_tree_at(AT_FDCWD, path);
}
