/* SPDX-License-Identifier: Apache-2.0 */
#include "common/file-watch.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>

typedef struct FileWatchWorld {
        sd_event *event;
        FileWatch *watch;
        unsigned n_rings;
} FileWatchWorld;

static void on_watched_file_changed(void *userdata) {
        ((FileWatchWorld *) userdata)->n_rings++;
}

/* The number of callbacks so far. */
static unsigned count_change_events(FileWatchWorld *world) {
        uint64_t until = now_boottime_usec() + 200 * USEC_PER_MSEC;
        unsigned n;
        int r;

        do { /* until no event is pending, or longer */
                r = sd_event_run(world->event, 20 * USEC_PER_MSEC);
                REQUIRE(r >= 0);
        } while (r > 0 || now_boottime_usec() < until);
        n = world->n_rings;
        world->n_rings = 0;
        return n;
}

static const char *path_in_test_directory(const char *name) {
        static char paths[32][128];
        static size_t next;
        char *path = paths[next++ % N_ELEMENTS(paths)];

        (void) snprintf(path, sizeof(paths[0]), "%s/%s", test_directory(), name);
        return path;
}

static void write_plainly(const char *path, const char *text) {
        cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        REQUIRE(fd >= 0 && write_all(fd, text, strlen(text)) >= 0);
}

static void file_watch_world_init(FileWatchWorld *world) {
        *world = (FileWatchWorld){ 0 };
        REQUIRE(sd_event_new(&world->event) >= 0);
        REQUIRE(file_watch_new(world->event, on_watched_file_changed, world, &world->watch) >= 0);
}

static void file_watch_world_done(FileWatchWorld *world) {
        file_watch_free(world->watch);
        sd_event_unref(world->event);
}

TEST(several_changes_of_a_file_in_one_turn_are_one_callback)
{
        const char *const paths[] = { path_in_test_directory("a"), NULL,
                                      path_in_test_directory("b") };
        FileWatchWorld world;

        file_watch_world_init(&world);
        EXPECT_EQ(file_watch_set(world.watch, paths, N_ELEMENTS(paths)), 0);
        EXPECT_EQ(count_change_events(&world), 0);
        write_plainly(path_in_test_directory("a"), "1");
        write_plainly(path_in_test_directory("a"), "2");
        REQUIRE(write_file_atomic_at(AT_FDCWD, path_in_test_directory("b"), "1", 1, 0600) >= 0);
        EXPECT_EQ(count_change_events(&world), 1);
        write_plainly(path_in_test_directory("c"), "1");
        EXPECT_EQ(count_change_events(&world), 0);
        REQUIRE(link(path_in_test_directory("c"), path_in_test_directory("d")) == 0 &&
                rename(path_in_test_directory("d"), path_in_test_directory("b")) == 0);
        EXPECT_EQ(count_change_events(&world), 1);
        EXPECT_EQ(file_watch_set(world.watch, paths, 1), 0);
        write_plainly(path_in_test_directory("b"), "2");
        EXPECT_EQ(count_change_events(&world), 0);
        file_watch_world_done(&world);
}

TEST(a_link_is_watched_at_both_its_ends)
{
        const char *const path = path_in_test_directory("link");
        FileWatchWorld world;

        file_watch_world_init(&world);
        REQUIRE(mkdir(path_in_test_directory("far"), 0700) == 0);
        write_plainly(path_in_test_directory("far/file"), "1");
        REQUIRE(symlink("far/file", path_in_test_directory("link")) == 0);
        EXPECT_EQ(file_watch_set(world.watch, &path, 1), 0);
        write_plainly(path_in_test_directory("far/file"), "2");
        EXPECT_EQ(count_change_events(&world), 1);
        REQUIRE(unlink(path_in_test_directory("link")) == 0 &&
                symlink("far/other", path_in_test_directory("link")) == 0);
        EXPECT_EQ(count_change_events(&world), 1);
        file_watch_world_done(&world);
}

TEST(a_file_in_a_mounted_directory_is_watched_through_its_links)
{
        const char *const path = path_in_test_directory("token");
        FileWatchWorld world;

        file_watch_world_init(&world);
        REQUIRE(mkdir(path_in_test_directory("one"), 0700) == 0 &&
                symlink("one", path_in_test_directory("..data")) == 0);
        write_plainly(path_in_test_directory("one/token"), "1");
        REQUIRE(symlink("..data/token", path_in_test_directory("token")) == 0);
        EXPECT_EQ(file_watch_set(world.watch, &path, 1), 0);
        REQUIRE(mkdir(path_in_test_directory("two"), 0700) == 0 &&
                symlink("two", path_in_test_directory("..new")) == 0);
        write_plainly(path_in_test_directory("two/token"), "2");
        REQUIRE(rename(path_in_test_directory("..new"), path_in_test_directory("..data")) == 0);
        EXPECT(count_change_events(&world) >= 1);
        file_watch_world_done(&world);
}

TEST(a_missing_directory_is_not_an_error)
{
        const char *const paths[] = { "/nowhere/a", path_in_test_directory("a") };
        FileWatchWorld world;

        file_watch_world_init(&world);
        EXPECT_EQ(file_watch_set(world.watch, paths, N_ELEMENTS(paths)), 0);
        write_plainly(path_in_test_directory("a"), "1");
        EXPECT_EQ(count_change_events(&world), 1);
        file_watch_world_done(&world);
}
