/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/pod-user-namespace.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>

typedef struct World {
        char directory[64];
        BundleConfig config;
} World;

static void world_init(World *world) {
        (void) snprintf(world->directory, sizeof(world->directory), "/tmp/mainstay-users-XXXXXX");
        REQUIRE(mkdtemp(world->directory) != NULL);
        world->config = (BundleConfig){ .state_dir = world->directory };
}

static void world_done(World *world) {
        EXPECT_EQ(remove_tree_at(AT_FDCWD, world->directory), 0);
}

static Pod pod_of(const char *uid) {
        return (Pod){ .metadata.uid = (char *) (uintptr_t) uid,
                      .spec.host_users = { .is_set = true, .value = false } };
}

static char *directory_of(const World *world, const char *uid) {
        char *path;

        REQUIRE(asprintf(&path, "%s/pods/%s", world->directory, uid) > 0);
        return path;
}

static unsigned allocate_user_ids(const World *world, const char *uid) {
        cleanup_free char *path = directory_of(world, uid);
        Pod pod = pod_of(uid);
        unsigned id = 0;

        REQUIRE(mkdir_parents_at(AT_FDCWD, path, 0700) == 0);
        EXPECT_EQ(userns_allocate_ids(&world->config, &pod, &id, NULL), 0);
        return id;
}

TEST(pods_get_distinct_ids_and_keep_them)
{
        unsigned ids[20];
        char uid[8];
        World world;

        world_init(&world);
        for (unsigned i = 0; i < N_ELEMENTS(ids); i++) {
                (void) snprintf(uid, sizeof(uid), "%u", i);
                ids[i] = allocate_user_ids(&world, uid);
                EXPECT_EQ(ids[i] % USERNS_IDS_PER_POD, 0);
                EXPECT(ids[i] >= USERNS_FIRST_ID && ids[i] < USERNS_END_ID);
                for (unsigned j = 0; j < i; j++)
                        EXPECT(ids[i] != ids[j]);
        }
        for (unsigned i = 0; i < N_ELEMENTS(ids); i++) {
                (void) snprintf(uid, sizeof(uid), "%u", i);
                EXPECT_EQ(allocate_user_ids(&world, uid), ids[i]);
        }
        world_done(&world);
}

TEST(ids_are_free_again_when_the_pod_directory_is_removed)
{
        cleanup_free char *path = NULL;
        unsigned first, second;
        World world;

        world_init(&world);
        first = allocate_user_ids(&world, "a");
        second = allocate_user_ids(&world, "b");
        path = directory_of(&world, "a");
        EXPECT_EQ(remove_tree_at(AT_FDCWD, path), 0);
        EXPECT_EQ(allocate_user_ids(&world, "c"), first);
        EXPECT(allocate_user_ids(&world, "d") > second);
        world_done(&world);
}

TEST(damaged_id_link_is_replaced)
{
        static const char *const targets[] = { "", "x", "0", "65536", "524289", "4294901760" };

        for (size_t i = 1; i < N_ELEMENTS(targets); i++) {
                cleanup_free char *path = NULL, *link = NULL;
                World world;

                world_init(&world);
                path = directory_of(&world, "a");
                link = path_join(path, "user-ids");
                REQUIRE(link && mkdir_parents_at(AT_FDCWD, path, 0700) == 0);
                REQUIRE(symlink(targets[i], link) == 0);
                EXPECT_EQ(allocate_user_ids(&world, "b"), USERNS_FIRST_ID);
                EXPECT_EQ(allocate_user_ids(&world, "a"), USERNS_FIRST_ID + USERNS_IDS_PER_POD);
                world_done(&world);
        }
}

TEST(pod_in_the_nodes_user_namespace_has_no_id_range)
{
        Pod pod = { .metadata.uid = (char[]){ "a" } };
        unsigned id = 1;
        World world;

        world_init(&world);
        EXPECT_EQ(userns_load_ids(&world.config, &pod, &id), 0);
        EXPECT_EQ(id, 0);
        world_done(&world);
}
