/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/report-store.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "tests/failing-readdir.h"
#include "tests/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
        ROOM = 1024 * 1024,
        OBJECTS = 40 /* more than one child can write */
};

typedef struct StoreWorld {
        sd_event *event;
        char path[64];
        int fd;
        ReportQueue *queue;
        ReportStore *store;
} StoreWorld;

static void open_world_store(StoreWorld *world, size_t room) {
        world->queue = report_queue_new(room);
        REQUIRE(report_store_new(world->event, world->path, world->queue, &world->store) == 0);
}

static void store_world_init(StoreWorld *world, size_t room) {
        sigset_t child;

        *world = (StoreWorld){ .path = "/tmp/mainstay-report-XXXXXX" };
        REQUIRE(sigemptyset(&child) == 0 && sigaddset(&child, SIGCHLD) == 0);
        REQUIRE(sigprocmask(SIG_BLOCK, &child, NULL) == 0);
        REQUIRE(sd_event_new(&world->event) >= 0);
        REQUIRE(mkdtemp(world->path) != NULL);
        world->fd = open(world->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        REQUIRE(world->fd >= 0);
        open_world_store(world, room);
}

static void end_world_store(StoreWorld *world) {
        report_store_free(world->store);
        report_queue_free(world->queue);
}

static void store_world_done(StoreWorld *world) {
        end_world_store(world);
        sd_event_unref(world->event);
        close_fd(world->fd);
        (void) remove_tree_at(AT_FDCWD, world->path);
}

static void restart_store(StoreWorld *world) {
        end_world_store(world);
        open_world_store(world, ROOM);
}

static void save_all(StoreWorld *world) {
        uint64_t deadline = now_boottime_usec() + 60 * USEC_PER_SEC;

        report_store_save(world->store);
        while (report_queue_has_unsaved(world->queue) && now_boottime_usec() < deadline)
                REQUIRE(sd_event_run(world->event, USEC_PER_SEC) >= 0);
        EXPECT(!report_queue_has_unsaved(world->queue));
}

static bool has_file(const StoreWorld *world, const char *name) {
        return faccessat(world->fd, name, F_OK, 0) == 0;
}

static bool wait_for_file(const StoreWorld *world, const char *name) {
        uint64_t deadline = now_boottime_usec() + 60 * USEC_PER_SEC;

        while (!has_file(world, name) && now_boottime_usec() < deadline)
                REQUIRE(sd_event_run(world->event, 10 * USEC_PER_MSEC) >= 0);
        return has_file(world, name);
}

static void expect_waiting(const StoreWorld *world, const char *expected) {
        cleanup_free char *text = report_queue_take(world->queue, ROOM);

        EXPECT_STREQ(text, expected);
}

TEST(waiting_lines_outlive_the_agent_in_their_order)
{
        StoreWorld world;

        store_world_init(&world, 12);
        (void) report_queue_put(world.queue, "z", REPORT_STATUS_KEY, "{0}");
        (void) report_queue_put(world.queue, "web", "e1", "{1}");
        (void) report_queue_put(world.queue, "db", REPORT_STATUS_KEY, "{2}");
        (void) report_queue_put(world.queue, "web", REPORT_STATUS_KEY, "{3}");
        restart_store(&world);
        EXPECT_EQ(report_queue_dropped(world.queue), 1);
        expect_waiting(&world, "{1}\n{2}\n{3}\n");
        EXPECT(has_file(&world, "web"));
        report_queue_sent(world.queue);
        restart_store(&world);
        EXPECT(!has_file(&world, "web"));
        EXPECT_EQ(report_queue_length(world.queue), 0);
        store_world_done(&world);
}

TEST(queued_lines_are_written_by_child_processes)
{
        StoreWorld world;
        char name[16];

        store_world_init(&world, ROOM);
        for (int i = 0; i < OBJECTS; i++) {
                (void) snprintf(name, sizeof(name), "pod-%d", i);
                (void) report_queue_put(world.queue, name, REPORT_STATUS_KEY, "{}");
        }
        save_all(&world);
        for (int i = 0; i < OBJECTS; i++) {
                (void) snprintf(name, sizeof(name), "pod-%d", i);
                EXPECT(wait_for_file(&world, name));
        }
        store_world_done(&world);
}

TEST(line_that_changes_while_it_is_written_is_written_again)
{
        StoreWorld world;

        store_world_init(&world, ROOM);
        (void) report_queue_put(world.queue, "web", REPORT_STATUS_KEY, "{1}");
        report_store_save(world.store);
        (void) report_queue_put(world.queue, "web", REPORT_STATUS_KEY, "{2}");
        restart_store(&world);
        expect_waiting(&world, "{2}\n");
        store_world_done(&world);
}

TEST(line_that_is_sent_while_it_is_written_needs_no_file)
{
        StoreWorld world;
        cleanup_free char *text = NULL;

        store_world_init(&world, ROOM);
        (void) report_queue_put(world.queue, "web", REPORT_STATUS_KEY, "{1}");
        report_store_save(world.store);
        text = report_queue_take(world.queue, ROOM);
        report_queue_sent(world.queue);
        restart_store(&world);
        EXPECT(!has_file(&world, "web"));
        store_world_done(&world);
}

TEST(failed_write_is_repeated)
{
        StoreWorld world;

        store_world_init(&world, ROOM);
        REQUIRE(mkdirat(world.fd, ".web", 0700) == 0); /* the path of the new file */
        (void) report_queue_put(world.queue, "web", REPORT_STATUS_KEY, "{1}");
        report_store_save(world.store);
        while (!report_queue_has_unsaved(world.queue))
                REQUIRE(sd_event_run(world.event, USEC_PER_SEC) >= 0);
        EXPECT(!has_file(&world, "web"));
        REQUIRE(unlinkat(world.fd, ".web", AT_REMOVEDIR) == 0);
        save_all(&world);
        EXPECT(wait_for_file(&world, "web"));
        store_world_done(&world);
}

TEST(a_damaged_file_is_set_aside_and_the_others_are_read)
{
        StoreWorld world;

        store_world_init(&world, ROOM);
        (void) report_queue_put(world.queue, "web", REPORT_STATUS_KEY, "{1}");
        (void) report_queue_put(world.queue, "db", REPORT_STATUS_KEY, "{2}");
        end_world_store(&world);
        EXPECT_EQ(write_file_atomic_at(world.fd, "db", "1 status {", 10, 0600), 0);
        open_world_store(&world, ROOM);
        expect_waiting(&world, "{1}\n");
        EXPECT(has_file(&world, "db.damaged"));
        store_world_done(&world);
}

TEST(a_file_that_cannot_be_read_stays_and_the_others_are_read)
{
        StoreWorld world;

        store_world_init(&world, ROOM);
        (void) report_queue_put(world.queue, "web", REPORT_STATUS_KEY, "{1}");
        end_world_store(&world);
        REQUIRE(symlinkat("/proc/self/mem", world.fd, "db") == 0); /* read() gives EIO */
        open_world_store(&world, ROOM);
        expect_waiting(&world, "{1}\n");
        EXPECT(!has_file(&world, "db.damaged"));
        EXPECT_EQ(faccessat(world.fd, "db", F_OK, AT_SYMLINK_NOFOLLOW), 0);
        store_world_done(&world);
}

TEST(a_directory_that_cannot_be_listed_keeps_its_files_for_the_next_start)
{
        StoreWorld world;

        store_world_init(&world, ROOM);
        (void) report_queue_put(world.queue, "web", REPORT_STATUS_KEY, "{1}");
        end_world_store(&world);
        readdir_calls_left = 0;
        open_world_store(&world, ROOM);
        readdir_calls_left = -1;
        EXPECT_EQ(report_queue_length(world.queue), 0);
        restart_store(&world);
        expect_waiting(&world, "{1}\n");
        store_world_done(&world);
}

TEST(a_truncated_file_gives_no_line)
{
        StoreWorld world;
        cleanup_free char *whole = NULL;
        size_t length;

        store_world_init(&world, ROOM);
        (void) report_queue_put(world.queue, "web", "e1", "{1}");
        (void) report_queue_put(world.queue, "web", REPORT_STATUS_KEY, "{2}");
        end_world_store(&world);
        REQUIRE(read_file_at(world.fd, "web", ROOM, &whole, &length) == 0);
        for (size_t i = 0; i < length; i++) {
                REQUIRE(write_file_atomic_at(world.fd, "web", whole, i, 0600) == 0);
                open_world_store(&world, ROOM);
                EXPECT_EQ(report_queue_length(world.queue), 0);
                EXPECT(has_file(&world, "web.damaged") && !has_file(&world, "web"));
                end_world_store(&world);
        }
        open_world_store(&world, ROOM);
        store_world_done(&world);
}

TEST(only_changed_files_are_written)
{
        StoreWorld world;
        struct stat before, after;

        store_world_init(&world, ROOM);
        (void) report_queue_put(world.queue, "web", REPORT_STATUS_KEY, "{1}");
        (void) report_queue_put(world.queue, "db", REPORT_STATUS_KEY, "{2}");
        restart_store(&world);
        EXPECT_EQ(fstatat(world.fd, "web", &before, 0), 0);
        EXPECT_EQ(report_queue_put(world.queue, "web", REPORT_STATUS_KEY, "{1}"), 0);
        (void) report_queue_put(world.queue, "db", REPORT_STATUS_KEY, "{3}");
        restart_store(&world);
        EXPECT_EQ(fstatat(world.fd, "web", &after, 0), 0);
        EXPECT_EQ(before.st_ino, after.st_ino);
        EXPECT(!has_file(&world, ".dropped"));
        expect_waiting(&world, "{1}\n{3}\n");
        store_world_done(&world);
}
