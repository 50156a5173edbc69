/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/pod-order.h"

#include "agent/model/own-values.h"

#include "common/cleanup.h"
#include "tests/test.h"

enum {
        PODS_MAX = 8
};

/* Pods, written as "name" or "name after others", in the namespace default on the node n. */
typedef struct World {
        Pod pods[PODS_MAX];
        const Pod *list[PODS_MAX];
        size_t n;
} World;

static void add(World *world, const char *name, const char *after) {
        Pod *pod = &world->pods[world->n];

        REQUIRE(world->n < PODS_MAX);
        *pod = (Pod){ .metadata = { .namespace = strdup("default"),
                                    .source = OBJECT_SOURCE_FILE } };
        pod->spec.node_name = strdup("n");
        REQUIRE(asprintf(&pod->metadata.name, "%s-n", name) > 0);
        if (after)
                REQUIRE(own_value_set(&pod->metadata, OWN_KEY_AFTER, after) >= 0);
        world->list[world->n++] = pod;
}

static void world_done(World *world) {
        for (size_t i = 0; i < world->n; i++) {
                Pod *pod = &world->pods[i];

                free(pod->metadata.namespace);
                free(pod->metadata.name);
                free(pod->spec.node_name);
                string_map_done(&pod->metadata.annotations);
        }
}

/* Returns the cycle that starts at the first pod, or "none". */
static char *cycle_of_first(const World *world) {
        size_t next[PODS_MAX];

        REQUIRE(pod_order_find_cycles(world->list, world->n, next) == 0);
        return next[0] == world->n ? strdup("none")
                                   : pod_order_format_cycle(world->list, world->n, next, 0);
}

#define EXPECT_CYCLE(world, expected)                            \
        do {                                                     \
                cleanup_free char *text = cycle_of_first(world); \
                EXPECT_STREQ(text, expected);                    \
        } while (0)

/* "0 1 2": the step of each pod */
static char *stop_steps(const World *world) {
        size_t steps[PODS_MAX], n_steps = 0, length;
        char *text = NULL;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out && pod_order_stop_steps(world->list, world->n, steps, &n_steps) == 0);
        for (size_t i = 0; i < world->n; i++) {
                EXPECT(steps[i] < n_steps);
                fprintf(out, "%s%zu", i > 0 ? " " : "", steps[i]);
        }
        REQUIRE(fclose(out) == 0);
        return text;
}

#define EXPECT_STEPS(world, expected)                        \
        do {                                                 \
                cleanup_free char *text = stop_steps(world); \
                EXPECT_STREQ(text, expected);                \
        } while (0)

TEST(a_name_refers_to_a_pod_with_or_without_its_node_and_namespace)
{
        cleanup_with(world_done) World world = { 0 };

        add(&world, "web", " db,default/cache-n\n other/log,,");
        add(&world, "db", NULL);
        add(&world, "cache", NULL);
        add(&world, "log", NULL);
        EXPECT(pod_is_after(world.list[0], world.list[1]));
        EXPECT(pod_is_after(world.list[0], world.list[2]));
        EXPECT(!pod_is_after(world.list[0], world.list[3])); /* in another namespace */
        EXPECT(!pod_is_after(world.list[1], world.list[0]));
}

TEST(a_name_does_not_refer_to_a_pod_of_a_source_with_lower_trust)
{
        static const bool expected[N_OBJECT_SOURCES][N_OBJECT_SOURCES] = {
                /* columns: the source of the named pod (file, url, index, api); rows: that of the
                 * pod that names it */
                [OBJECT_SOURCE_FILE] = { false, true, false, false, false },
                [OBJECT_SOURCE_URL] = { false, true, true, false, false },
                [OBJECT_SOURCE_INDEX] = { false, true, false, true, false },
                /* pods of the API server: the annotation has no effect */
                [OBJECT_SOURCE_APISERVER] = { false, false, false, false, false },
        };
        World world = { .n = 0 };

        add(&world, "db", NULL);
        add(&world, "web", "db");
        for (ObjectSource by = OBJECT_SOURCE_FILE; by < N_OBJECT_SOURCES; by++)
                for (ObjectSource other = 0; other < N_OBJECT_SOURCES; other++) {
                        world.pods[0].metadata.source = other;
                        world.pods[1].metadata.source = by;
                        EXPECT_EQ(pod_is_after(&world.pods[1], &world.pods[0]),
                                  expected[by][other]);
                }
        world_done(&world);
}

TEST(names_that_no_pod_can_have_are_refused)
{
        static const struct {
                const char *after, *message;
        } cases[] = {
                { "db, default/cache", "" },
                { "", "" },
                { "Db", "must be names of pods such as 'db' or 'default/db', separated by commas" },
                { "a/b/c",
                  "must be names of pods such as 'db' or 'default/db', separated by commas" },
                { "/db",
                  "must be names of pods such as 'db' or 'default/db', separated by commas" },
                { "db, web", "must not name the pod itself" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(world_done) World world = { 0 };
                cleanup_error Error error = ERROR_NULL;

                add(&world, "web", cases[i].after);
                EXPECT_EQ(pod_after_check(world.list[0], &error),
                          cases[i].message[0] ? -EINVAL : 0);
                EXPECT_STREQ(strna(error.message), cases[i].message);
        }
}

TEST(number_of_names_is_limited_to_a_hundred)
{
        cleanup_with(world_done) World world = { 0 };
        cleanup_error Error error = ERROR_NULL;
        char after[3 * (POD_AFTER_NAMES_MAX + 1) + 1] = "";

        for (size_t i = 0; i <= POD_AFTER_NAMES_MAX; i++)
                memcpy(after + 3 * i, "db,", 4);
        add(&world, "web", after);
        EXPECT_EQ(pod_after_check(world.list[0], &error), -EINVAL);
        EXPECT_STREQ(error.message, "must be at most 100 names");
}

TEST(pods_that_wait_for_one_another_form_a_cycle)
{
        cleanup_with(world_done) World world = { 0 };

        add(&world, "a", "b");
        add(&world, "b", "c, d");
        add(&world, "c", "a");
        add(&world, "d", NULL);
        EXPECT_CYCLE(&world, "default/a after default/b after default/c after default/a");
}

TEST(a_pod_that_waits_for_a_cycle_is_not_part_of_it)
{
        cleanup_with(world_done) World world = { 0 };

        add(&world, "web", "a");
        add(&world, "a", "b");
        add(&world, "b", "a");
        EXPECT_CYCLE(&world, "none");
}

TEST(a_shared_or_missing_dependency_is_not_a_cycle)
{
        cleanup_with(world_done) World world = { 0 };

        add(&world, "a", "b, c, missing");
        add(&world, "b", "d");
        add(&world, "c", "d");
        add(&world, "d", NULL);
        EXPECT_CYCLE(&world, "none");
}

TEST(pods_stop_before_their_dependencies)
{
        cleanup_with(world_done) World world = { 0 };

        add(&world, "db", NULL);
        add(&world, "web", "db, cache");
        add(&world, "cache", "db");
        add(&world, "alone", NULL);
        EXPECT_STEPS(&world, "2 0 1 0");
}

TEST(pods_of_a_cycle_stop_together)
{
        cleanup_with(world_done) World world = { 0 };

        add(&world, "a", "b");
        add(&world, "b", "a");
        add(&world, "web", "a");
        EXPECT_STEPS(&world, "1 1 0");
}
