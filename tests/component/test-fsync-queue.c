/* SPDX-License-Identifier: Apache-2.0 */
#include "common/fsync-queue.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Whether a file has reached the disk cannot be tested; the existence, number and exit of children
 * can. */

static const char *const names[] = { "one", "two", NULL };

typedef struct FsyncWorld {
        sd_event *event;
        FsyncQueue *sync;
} FsyncWorld;

static void fsync_world_init(FsyncWorld *world) {
        sigset_t child;

        REQUIRE(sigemptyset(&child) == 0 && sigaddset(&child, SIGCHLD) == 0);
        REQUIRE(sigprocmask(SIG_BLOCK, &child, NULL) == 0);
        REQUIRE(sd_event_new(&world->event) >= 0);
        REQUIRE(fsync_queue_new(world->event, test_directory(), names, &world->sync) >= 0);
}

static void fsync_world_done(FsyncWorld *world) {
        fsync_queue_free(world->sync);
        sd_event_unref(world->event);
}

static bool has_fsync_child(void) {
        siginfo_t si = { 0 };

        return waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Runs the loop until no child is left. */
static void run_fsync_loop_once(FsyncWorld *world) {
        uint64_t deadline = now_boottime_usec() + 180 * USEC_PER_SEC;

        do
                REQUIRE(sd_event_run(world->event, 10 * USEC_PER_MSEC) >= 0);
        while (has_fsync_child() && now_boottime_usec() < deadline);
        EXPECT(!has_fsync_child());
}

TEST(files_marked_in_one_turn_are_synced_by_one_child)
{
        FsyncWorld world;

        fsync_world_init(&world);
        fsync_queue_add(world.sync, "a");
        fsync_queue_add(world.sync, "b");
        fsync_queue_add(world.sync, "a");
        EXPECT(!has_fsync_child());
        REQUIRE(sd_event_run(world.event, 0) >= 0);
        EXPECT(has_fsync_child());
        fsync_queue_add(world.sync, "c"); /* synced after the child that is running */
        run_fsync_loop_once(&world);
        fsync_world_done(&world);
}

TEST(missing_and_irregular_files_are_ignored)
{
        cleanup_free char *directory = path_join(test_directory(), "d"), *fifo = NULL;
        FsyncWorld world;

        fsync_world_init(&world);
        REQUIRE(mkdir(directory, 0700) == 0);
        fifo = path_join(directory, "one");
        REQUIRE(mkfifo(fifo, 0600) == 0);
        fsync_queue_add(world.sync, "d");
        fsync_queue_add(world.sync, "missing");
        run_fsync_loop_once(&world);
        fsync_queue_add(world.sync, "d");
        run_fsync_loop_once(&world);
        fsync_queue_add(NULL, "d");
        fsync_world_done(&world);
}

TEST(a_queue_that_is_freed_leaves_its_child_to_the_loop)
{
        FsyncWorld world;

        fsync_world_init(&world);
        fsync_queue_add(world.sync, "a");
        REQUIRE(sd_event_run(world.event, 0) >= 0);
        EXPECT(has_fsync_child());
        world.sync = fsync_queue_free(world.sync);
        run_fsync_loop_once(&world);
        fsync_world_done(&world);
}

static ino_t inode_of(const char *name) {
        cleanup_free char *path = path_join(test_directory(), name);
        struct stat st;

        return stat(path, &st) == 0 ? st.st_ino : 0;
}

TEST(the_version_that_was_synced_last_is_kept)
{
        cleanup_free char *directory = path_join(test_directory(), "d");
        cleanup_close int fd = -EBADF;
        FsyncWorld world;
        ino_t first;

        fsync_world_init(&world);
        fsync_queue_keep_synced(world.sync, "one");
        fd = open_directory_at(AT_FDCWD, directory, 0700);
        REQUIRE(fd >= 0 && write_file_atomic_at(fd, "one", "1", 1, 0600) == 0 &&
                write_file_atomic_at(fd, "two", "2", 1, 0600) == 0);
        first = inode_of("d/one");
        for (unsigned i = 0; i < 2; i++) { /* the second time it is the same file */
                fsync_queue_add(world.sync, "d");
                run_fsync_loop_once(&world);
                EXPECT_EQ(inode_of("d/one.synced"), first);
                EXPECT_EQ(inode_of("d/one.synced.new"), 0U);
        }
        EXPECT_EQ(inode_of("d/two.synced"), 0U);
        REQUIRE(write_file_atomic_at(fd, "one", "3", 1, 0600) == 0);
        EXPECT_EQ(inode_of("d/one.synced"), first);
        fsync_queue_add(world.sync, "d");
        run_fsync_loop_once(&world);
        EXPECT_EQ(inode_of("d/one.synced"), inode_of("d/one"));
        REQUIRE(unlinkat(fd, "one", 0) == 0);
        fsync_queue_add(world.sync, "d");
        run_fsync_loop_once(&world);
        EXPECT_EQ(inode_of("d/one.synced"), 0U);
        fsync_world_done(&world);
}

/* The child has opened it, and waits for the lock. */
TEST(a_directory_may_be_removed_before_its_files_are_synced)
{
        cleanup_free char *directory = path_join(test_directory(), "d");
        cleanup_close int fd = -EBADF;
        FsyncWorld world;

        fsync_world_init(&world);
        fsync_queue_keep_synced(world.sync, "one");
        fd = open_directory_at(AT_FDCWD, directory, 0700);
        REQUIRE(fd >= 0 && write_file_atomic_at(fd, "one", "1", 1, 0600) == 0);
        REQUIRE(flock(fd, LOCK_EX) == 0);
        fsync_queue_add(world.sync, "d");
        REQUIRE(sd_event_run(world.event, 0) >= 0);
        EXPECT(has_fsync_child());
        REQUIRE(remove_tree_at(AT_FDCWD, directory) == 0);
        REQUIRE(flock(fd, LOCK_UN) == 0);
        run_fsync_loop_once(&world);
        EXPECT_EQ(fsync_queue_last_error(world.sync), 0);
        EXPECT_EQ(inode_of("d"), 0U);
        fsync_world_done(&world);
}

TEST(a_directory_is_removed_when_its_child_has_ended)
{
        cleanup_free char *directory = path_join(test_directory(), "d");
        cleanup_close int fd = -EBADF;
        FsyncWorld world;

        fsync_world_init(&world);
        fsync_queue_keep_synced(world.sync, "one");
        for (unsigned is_written_again = 0; is_written_again < 2; is_written_again++) {
                close_fd(fd);
                fd = open_directory_at(AT_FDCWD, directory, 0700);
                REQUIRE(fd >= 0 && write_file_atomic_at(fd, "one", "1", 1, 0600) == 0);
                REQUIRE(flock(fd, LOCK_EX) == 0);
                fsync_queue_add(world.sync, "d");
                REQUIRE(sd_event_run(world.event, 0) >= 0);
                fsync_queue_add(world.sync, "d");
                fsync_queue_remove(world.sync, "d");
                EXPECT(inode_of("d") != 0);
                if (is_written_again)
                        fsync_queue_add(world.sync, "d");
                REQUIRE(flock(fd, LOCK_UN) == 0);
                run_fsync_loop_once(&world);
                EXPECT_EQ(inode_of("d") != 0, is_written_again);
                EXPECT_EQ(fsync_queue_last_error(world.sync), 0);
        }
        fsync_queue_remove(world.sync, "d"); /* removed immediately */
        EXPECT_EQ(inode_of("d"), 0U);
        fsync_world_done(&world);
}
