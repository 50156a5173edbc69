/* SPDX-License-Identifier: Apache-2.0 */
#include "common/durable-write.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

typedef struct DurableWriteWorld {
        sd_event *event;
        ForkedTask *sync;
        char *directory;
        unsigned n_done;
        int r;
} DurableWriteWorld;

static void on_durable_write_done(int r, void *userdata) {
        DurableWriteWorld *world = userdata;

        world->n_done++;
        world->r = r;
        world->sync = NULL;
}

static void durable_world_init(DurableWriteWorld *world) {
        sigset_t child;

        *world = (DurableWriteWorld){ .directory = path_join(test_directory(), "a/b") };
        REQUIRE(sigemptyset(&child) == 0 && sigaddset(&child, SIGCHLD) == 0);
        REQUIRE(sigprocmask(SIG_BLOCK, &child, NULL) == 0);
        REQUIRE(sd_event_new(&world->event) >= 0);
}

static void durable_world_done(DurableWriteWorld *world) {
        sd_event_unref(world->event);
        free(world->directory);
}

static int start_durable_write(DurableWriteWorld *world, const DurableFile *files, size_t n) {
        world->n_done = 0;
        return durable_write_start(world->event, world->directory, files, n, on_durable_write_done,
                                   world, &world->sync);
}

static int wait_for_durable_write(DurableWriteWorld *world) {
        uint64_t deadline = now_boottime_usec() + 180 * USEC_PER_SEC;

        while (world->n_done == 0 && now_boottime_usec() < deadline)
                REQUIRE(sd_event_run(world->event, USEC_PER_SEC) >= 0);
        EXPECT_EQ(world->n_done, 1);
        return world->r;
}

static int write_durable_files(DurableWriteWorld *world, const DurableFile *files, size_t n) {
        int r = start_durable_write(world, files, n);

        return r < 0 ? r : wait_for_durable_write(world);
}

static void expect_file(const DurableWriteWorld *world, const char *name, const char *expected,
                        mode_t mode) {
        cleanup_free char *path = path_join(world->directory, name), *text = NULL;
        struct stat st = { 0 };
        size_t length;

        EXPECT_EQ(read_file_at(AT_FDCWD, path, MIB, &text, &length), 0);
        EXPECT_STREQ(text, expected);
        EXPECT(stat(path, &st) == 0);
        EXPECT_EQ(st.st_mode & 07777, mode);
}

TEST(files_are_written_with_their_modes_and_their_directory)
{
        DurableWriteWorld world;

        durable_world_init(&world);
        EXPECT_EQ(
                write_durable_files(
                        &world, (DurableFile[]){ { "one", "1\n", 0600 }, { "two", "", 0644 } }, 2),
                0);
        expect_file(&world, "one", "1\n", 0600);
        expect_file(&world, "two", "", 0644);
        EXPECT_EQ(write_durable_files(&world, &(DurableFile){ "one", "another", 0640 }, 1), 0);
        expect_file(&world, "one", "another", 0640);
        EXPECT_EQ(waitpid(-1, NULL, WNOHANG), -1);
        durable_world_done(&world);
}

TEST(a_file_without_a_text_is_removed)
{
        cleanup_free char *path = NULL;
        DurableWriteWorld world;

        durable_world_init(&world);
        EXPECT_EQ(write_durable_files(&world, &(DurableFile){ "one", "1", 0600 }, 1), 0);
        EXPECT_EQ(write_durable_files(&world,
                                      (DurableFile[]){ { "one", NULL, 0 },
                                                       { "two", "2", 0600 },
                                                       { "never", NULL, 0 } },
                                      3),
                  0);
        path = path_join(world.directory, "one");
        EXPECT(access(path, F_OK) < 0);
        expect_file(&world, "two", "2", 0600);
        durable_world_done(&world);
}

TEST(a_failed_write_leaves_the_old_file)
{
        cleanup_free char *path = NULL;
        DurableWriteWorld world;

        durable_world_init(&world);
        EXPECT_EQ(write_durable_files(&world, &(DurableFile){ "one", "1", 0600 }, 1), 0);
        path = path_join(world.directory, ".one");
        REQUIRE(mkdir(path, 0700) == 0); /* blocks the new file */
        EXPECT_EQ(write_durable_files(&world, &(DurableFile){ "one", "2", 0600 }, 1), -EISDIR);
        expect_file(&world, "one", "1", 0600);
        EXPECT_EQ(write_durable_files(&world, &(DurableFile){ "a/b", "2", 0600 }, 1), -EINVAL);
        EXPECT_EQ(write_durable_files(&world, &(DurableFile){ "", "2", 0600 }, 1), -EINVAL);
        durable_world_done(&world);
}

TEST(a_write_that_is_freed_completes_by_itself)
{
        cleanup_free char *path = NULL;
        uint64_t deadline = now_boottime_usec() + 180 * USEC_PER_SEC;
        DurableWriteWorld world;

        durable_world_init(&world);
        path = path_join(world.directory, "one");
        REQUIRE(durable_write_start(world.event, world.directory,
                                    &(DurableFile){ "one", "1", 0600 }, 1, on_durable_write_done,
                                    &world, &world.sync) >= 0);
        world.sync = forked_task_free(world.sync);
        while (waitpid(-1, NULL, WNOHANG) == 0 && now_boottime_usec() < deadline)
                REQUIRE(sd_event_run(world.event, 100 * USEC_PER_MSEC) >= 0);
        EXPECT_EQ(world.n_done, 0);
        EXPECT(access(path, F_OK) == 0);
        durable_world_done(&world);
}

TEST(writers_of_a_directory_take_turns)
{
        const DurableFile old = { "one", "old", 0600 }, new = { "one", "new", 0600 };
        cleanup_close int other = -EBADF;
        DurableWriteWorld world;

        durable_world_init(&world);
        EXPECT_EQ(write_durable_files(&world, &old, 1), 0);
        other = open(world.directory, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
        REQUIRE(other >= 0 && flock(other, LOCK_EX) == 0);
        REQUIRE(start_durable_write(&world, &new, 1) >= 0);
        REQUIRE(sd_event_run(world.event, USEC_PER_SEC / 5) >= 0);
        EXPECT_EQ(world.n_done, 0);
        expect_file(&world, "one", "old", 0600);
        REQUIRE(flock(other, LOCK_UN) == 0);
        EXPECT_EQ(wait_for_durable_write(&world), 0);
        expect_file(&world, "one", "new", 0600);
        durable_world_done(&world);
}

TEST(a_write_in_this_process_is_complete_when_it_returns)
{
        DurableWriteWorld world;
        cleanup_free char *path = NULL;

        durable_world_init(&world);
        path = path_join(world.directory, "two");
        EXPECT_EQ(durable_write_now(world.directory,
                                    (DurableFile[]){ { "one", "1", 0600 }, { "two", "2", 0600 } },
                                    2),
                  0);
        expect_file(&world, "one", "1", 0600);
        EXPECT_EQ(durable_write_now(world.directory, &(DurableFile){ "two", NULL, 0 }, 1), 0);
        EXPECT(access(path, F_OK) < 0);
        EXPECT_EQ(durable_write_now(world.directory, &(DurableFile){ "a/b", "2", 0600 }, 1),
                  -EINVAL);
        durable_world_done(&world);
}

TEST(a_write_that_is_waited_for_gives_its_result_and_is_reaped)
{
        cleanup_free char *path = NULL;
        DurableWriteWorld world;

        durable_world_init(&world);
        REQUIRE(durable_write_start(world.event, world.directory,
                                    &(DurableFile){ "one", "1", 0600 }, 1, on_durable_write_done,
                                    &world, &world.sync) >= 0);
        EXPECT_EQ(forked_task_wait(world.sync), 0);
        expect_file(&world, "one", "1", 0600);
        path = path_join(world.directory, ".one");
        REQUIRE(mkdir(path, 0700) == 0); /* blocks the new file */
        REQUIRE(durable_write_start(world.event, world.directory,
                                    &(DurableFile){ "one", "2", 0600 }, 1, on_durable_write_done,
                                    &world, &world.sync) >= 0);
        EXPECT_EQ(forked_task_wait(world.sync), -EISDIR);
        EXPECT_EQ(waitpid(-1, NULL, WNOHANG), -1);
        EXPECT_EQ(world.n_done, 0);
        durable_world_done(&world);
}
