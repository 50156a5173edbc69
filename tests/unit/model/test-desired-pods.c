/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/desired-pods.h"

#include "common/cleanup.h"
#include "tests/test.h"

static Pod make_pod(const char *namespace, const char *name) {
        return (Pod){ .metadata = { .namespace = (char *) (uintptr_t) namespace,
                                    .name = (char *) (uintptr_t) name } };
}

TEST(the_set_is_sorted_by_namespace_and_name)
{
        static const char *const names[][2] = {
                { "b", "a" }, { "a", "z" }, { "a-b", "a" }, { "a", "b" }, { "b", "A" },
        };
        static const char *const expected[] = { "a/b", "a/z", "a-b/a", "b/A", "b/a" };
        const PodSource source = pod_source_of_file("f");
        cleanup_with(desired_pods_done) DesiredPods desired = { 0 };
        Pod pods[N_ELEMENTS(names)];

        for (size_t i = 0; i < N_ELEMENTS(names); i++) {
                pods[i] = make_pod(names[i][0], names[i][1]);
                EXPECT_EQ(desired_pods_add(&desired, &source, &pods[i]), 1);
        }
        for (size_t i = 0; i < desired.pods.n; i++) {
                const ObjectMeta *metadata = &desired.pods.items[i].pod->metadata;
                cleanup_free char *text = NULL;

                REQUIRE(asprintf(&text, "%s/%s", metadata->namespace, metadata->name) > 0);
                EXPECT_STREQ(text, expected[i]);
                EXPECT(desired_pods_find(&desired, metadata->namespace, metadata->name) ==
                       &desired.pods.items[i]);
        }
        EXPECT(!desired_pods_find(&desired, "a", "a"));
        EXPECT(!desired_pods_find(&desired, "c", "a"));
}

TEST(the_first_pod_keeps_its_name)
{
        const PodSource file = pod_source_of_file("f"), api = { .kind = POD_SOURCE_APISERVER };
        cleanup_with(desired_pods_done) DesiredPods desired = { 0 };
        const Pod first = make_pod("default", "web"), second = make_pod("default", "web");
        Pod *third;

        EXPECT_EQ(desired_pods_add(&desired, &file, &first), 1);
        EXPECT_EQ(desired_pods_add(&desired, &api, &second), 0);
        REQUIRE(pod_copy(&second, &third) == 0);
        EXPECT_EQ(desired_pods_add_take(&desired, &api, third), 0);
        EXPECT_EQ(desired.pods.n, 1);
        EXPECT(desired.pods.items[0].pod == &first);
        EXPECT_EQ(desired.pods.items[0].source.kind, POD_SOURCE_FILE);
        EXPECT(!desired.is_incomplete);
}

TEST(a_pod_that_was_taken_is_freed_with_the_set)
{
        const PodSource source = { .kind = POD_SOURCE_ORPHAN };
        cleanup_with(desired_pods_done) DesiredPods desired = { 0 };
        const Pod web = make_pod("default", "web");
        Pod *copy;

        REQUIRE(pod_copy(&web, &copy) == 0);
        EXPECT_EQ(desired_pods_add_take(&desired, &source, copy), 1);
        EXPECT(desired.pods.items[0].owned == copy);
}
