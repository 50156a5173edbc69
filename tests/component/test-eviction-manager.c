/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/eviction-manager.h"
#include "agent/eviction/memory-pressure-watch.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "tests/test.h"

#include <dirent.h>
#include <sys/mman.h>

#define STEP_USEC (3 * USEC_PER_SEC)

/* Callbacks with fixed answers, and their calls. */
typedef struct World {
        bool has_active_pods, is_evicting, is_removing_images, has_images, has_pods;
        unsigned evictions, prunes, conditions, shortages;
        ResourceShortage shortage;
        sd_event *event;
        EvictionPolicy policy;
        EvictionManager *pressure;
} World;

static bool is_busy(void *userdata) {
        return ((World *) userdata)->has_active_pods;
}

static bool is_relieving(bool of_images, void *userdata) {
        const World *world = userdata;

        return world->is_evicting || (of_images && world->is_removing_images);
}

static bool remove_images(void *userdata) {
        World *world = userdata;

        world->prunes++;
        return world->has_images;
}

static bool record_eviction(const ResourceShortage *shortage, void *userdata) {
        World *world = userdata;

        world->evictions++;
        world->shortage = *shortage;
        return world->has_pods;
}

static void on_conditions(void *userdata) {
        ((World *) userdata)->conditions++;
}

static void on_node_event(const PodEvent *event, void *userdata) {
        if (streq(event->reason, "EvictionThresholdMet"))
                ((World *) userdata)->shortages++;
}

/* If 'is_short', the threshold exceeds the capacity, so that the resource is always under
 * pressure. */
static void world_init(World *world, EvictionSignal signal, bool is_short) {
        static const EvictionManagerCallbacks callbacks = { is_busy,       is_relieving,
                                                            remove_images, record_eviction,
                                                            on_conditions, on_node_event };

        world->policy.thresholds[0] =
                (EvictionThreshold){ .signal = signal,
                                     .value = { .quantity = is_short ? INT64_MAX / 4 : 1 } };
        world->policy.n_thresholds = 1;
        world->policy.transition_usec = 300 * USEC_PER_SEC;
        REQUIRE(sd_event_new(&world->event) >= 0);
        REQUIRE(eviction_manager_new(
                        &(EvictionManagerConfig){ .event = world->event,
                                                  .policy = &world->policy,
                                                  .paths = { .state_dir = test_directory(),
                                                             .images_dir = test_directory() },
                                                  .callbacks = &callbacks,
                                                  .userdata = world },
                        &world->pressure) >= 0);
}

static void world_done(World *world) {
        eviction_manager_free(world->pressure);
        sd_event_unref(world->event);
}

/* Runs the loop until the count is reached or the deadline is over. */
static void run_until(World *world, const unsigned *count, unsigned wanted) {
        uint64_t deadline = now_boottime_usec() + 180 * USEC_PER_SEC;

        while (*count < wanted && now_boottime_usec() < deadline)
                REQUIRE(sd_event_run(world->event, STEP_USEC) >= 0);
        EXPECT(*count >= wanted);
}

/* Descriptors of armed timers of this process. */
static unsigned count_armed_timers(void) {
        DIR *dir = opendir("/proc/self/fdinfo");
        struct dirent *entry;
        unsigned n = 0;

        REQUIRE(dir != NULL);
        while ((entry = readdir(dir))) {
                cleanup_free char *text = NULL;
                const char *value;

                if (read_file_at(dirfd(dir), entry->d_name, 4096, &text, NULL) < 0)
                        continue;
                value = strstr(text, "it_value: (");
                n += value && strncmp(value, "it_value: (0, 0)", 16) != 0;
        }
        (void) closedir(dir);
        return n;
}

TEST(the_timer_runs_only_while_there_are_pods)
{
        World world = { 0 };

        world_init(&world, EVICTION_PIDS, /* is_short= */ false);
        eviction_manager_synchronize(world.pressure);
        REQUIRE(sd_event_run(world.event, 0) >= 0);
        EXPECT_EQ(count_armed_timers(), 0);
        world.has_active_pods = true;
        eviction_manager_wake(world.pressure);
        REQUIRE(sd_event_run(world.event, 0) >= 0);
        EXPECT_EQ(count_armed_timers(), 1);
        world.has_active_pods = false;
        for (int i = 0; i < 3; i++)
                REQUIRE(sd_event_run(world.event, STEP_USEC) >= 0);
        EXPECT_EQ(count_armed_timers(), 0);
        EXPECT_EQ(eviction_manager_conditions(world.pressure)->set, 0);
        world_done(&world);
}

TEST(a_node_with_enough_resources_evicts_no_pod)
{
        World world = { .has_active_pods = true, .has_pods = true };

        world_init(&world, EVICTION_NODE_FS, /* is_short= */ false);
        eviction_manager_synchronize(world.pressure);
        EXPECT_EQ(world.evictions + world.prunes + world.shortages + world.conditions, 0);
        world_done(&world);
}

TEST(the_next_eviction_waits_until_the_previous_one_has_taken_effect)
{
        World world = { .has_active_pods = true, .has_pods = true };

        world_init(&world, EVICTION_PIDS, /* is_short= */ true);
        eviction_manager_synchronize(world.pressure);
        EXPECT_EQ(world.evictions, 1);
        EXPECT_EQ(world.shortage.grace_seconds, 1);
        EXPECT_EQ(world.conditions, 1);
        EXPECT_EQ(eviction_manager_conditions(world.pressure)->set,
                  NODE_CONDITION_BIT(NODE_PID_PRESSURE));
        world.is_evicting = true;
        for (int i = 0; i < 2; i++)
                REQUIRE(sd_event_run(world.event, STEP_USEC) >= 0);
        EXPECT_EQ(world.evictions, 1);
        world.is_evicting = false;
        run_until(&world, &world.evictions, 2);
        EXPECT_EQ(world.shortages, 1);
        EXPECT_EQ(world.prunes, 0);
        world_done(&world);
}

TEST(images_are_removed_before_pods_are_evicted_under_disk_pressure)
{
        World world = { .has_active_pods = true, .has_pods = true, .has_images = true };

        world_init(&world, EVICTION_NODE_FS, /* is_short= */ true);
        eviction_manager_synchronize(world.pressure);
        run_until(&world, &world.prunes, 2);
        EXPECT_EQ(world.evictions, 0);
        world.has_images = false;
        run_until(&world, &world.evictions, 1);
        world_done(&world);
}

TEST(only_evictions_under_disk_pressure_wait_for_the_removal_of_images)
{
        World world = { .has_active_pods = true, .has_pods = true, .is_removing_images = true };

        world_init(&world, EVICTION_PIDS, /* is_short= */ true);
        eviction_manager_synchronize(world.pressure);
        EXPECT_EQ(world.evictions, 1);
        world_done(&world);
        world = (World){ .has_active_pods = true, .has_pods = true, .is_removing_images = true };
        world_init(&world, EVICTION_NODE_FS, /* is_short= */ true);
        eviction_manager_synchronize(world.pressure);
        EXPECT_EQ(world.evictions + world.prunes, 0);
        world.is_removing_images = false;
        run_until(&world, &world.evictions, 1);
        EXPECT(world.prunes > 0);
        world_done(&world);
}

TEST(a_condition_of_an_earlier_agent_in_this_boot_is_restored)
{
        World world = { 0 };

        world_init(&world, EVICTION_PIDS, /* is_short= */ false);
        eviction_manager_restore_condition(world.pressure, NODE_DISK_PRESSURE,
                                           1); /* in another boot */
        eviction_manager_restore_condition(world.pressure, NODE_PID_PRESSURE, now_realtime_usec());
        eviction_manager_synchronize(world.pressure);
        EXPECT_EQ(eviction_manager_conditions(world.pressure)->set,
                  NODE_CONDITION_BIT(NODE_PID_PRESSURE));
        world_done(&world);
}

static void count_call(void *userdata) {
        (*(unsigned *) userdata)++;
}

/* The threshold concerns the memory of the whole machine, and other programs may free memory at the
 * same time: the test allocates more until the notification arrives. */
TEST(cgroup_v1_notifies_when_memory_is_used)
{
        enum {
                SIZE = 64 << 20,
                PIECES_MAX = 32
        };
        MemoryPressureWatch *watch = NULL;
        char *pieces[PIECES_MAX];
        unsigned n_notified = 0;
        World world = { 0 };
        size_t n = 0;

        if (cgroup_version() != 1)
                return;
        REQUIRE(sd_event_new(&world.event) >= 0);
        REQUIRE(memory_pressure_watch_new(world.event, /* has_memcg= */ true, count_call,
                                          &n_notified, &watch) >= 0);
        memory_pressure_watch_set_growth(watch, SIZE / 2);
        EXPECT(memory_pressure_watch_is_active(watch));
        for (; n < PIECES_MAX && n_notified == 0; n++) {
                pieces[n] = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                                 -1, 0);
                REQUIRE(pieces[n] != MAP_FAILED);
                memset(pieces[n], 1, SIZE);
                REQUIRE(sd_event_run(world.event, STEP_USEC) >= 0);
        }
        run_until(&world, &n_notified, 1);
        while (n > 0)
                EXPECT_EQ(munmap(pieces[--n], SIZE), 0);
        memory_pressure_watch_free(watch);
        sd_event_unref(world.event);
}
