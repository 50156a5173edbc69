/* SPDX-License-Identifier: Apache-2.0 */
#include "common/dir-sync.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Whether a file has reached the disk nobody tells; that there is a child, how often, and how it
 * ends, is seen. */

static const char *const names[] = { "one", "two", NULL };

typedef struct World {
        sd_event *event;
        DirSync *sync;
} World;

static void world_init(World *world) {
        sigset_t child;

        REQUIRE(sigemptyset(&child) == 0 && sigaddset(&child, SIGCHLD) == 0);
        REQUIRE(sigprocmask(SIG_BLOCK, &child, NULL) == 0);
        REQUIRE(sd_event_new(&world->event) >= 0);
        REQUIRE(dir_sync_new(world->event, test_directory(), names, &world->sync) >= 0);
}

static void world_done(World *world) {
        dir_sync_free(world->sync);
        sd_event_unref(world->event);
}

static bool has_child(void) {
        siginfo_t si = { 0 };

        return waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Until there is no child any more. */
static void turn(World *world) {
        uint64_t deadline = now_boottime_usec() + 30 * USEC_PER_SEC;

        do
                REQUIRE(sd_event_run(world->event, 10 * USEC_PER_MSEC) >= 0);
        while (has_child() && now_boottime_usec() < deadline);
        EXPECT(!has_child());
}

TEST(many_marks_of_one_turn_are_one_child)
{
        World world;

        world_init(&world);
        dir_sync_mark(world.sync, "a");
        dir_sync_mark(world.sync, "b");
        dir_sync_mark(world.sync, "a");
        EXPECT(!has_child());
        REQUIRE(sd_event_run(world.event, 0) >= 0);
        EXPECT(has_child());
        dir_sync_mark(world.sync, "c"); /* after this one */
        turn(&world);
        world_done(&world);
}

TEST(what_is_gone_or_in_the_way_harms_nobody)
{
        cleanup_free char *directory = path_join(test_directory(), "d"), *fifo = NULL;
        World world;

        world_init(&world);
        REQUIRE(mkdir(directory, 0700) == 0);
        fifo = path_join(directory, "one");
        REQUIRE(mkfifo(fifo, 0600) == 0);
        dir_sync_mark(world.sync, "d");
        dir_sync_mark(world.sync, "missing");
        turn(&world);
        dir_sync_mark(world.sync, "d");
        turn(&world);
        dir_sync_mark(NULL, "d");
        world_done(&world);
}

TEST(one_that_is_freed_leaves_its_child_to_the_loop)
{
        World world;

        world_init(&world);
        dir_sync_mark(world.sync, "a");
        REQUIRE(sd_event_run(world.event, 0) >= 0);
        EXPECT(has_child());
        world.sync = dir_sync_free(world.sync);
        turn(&world);
        world_done(&world);
}
