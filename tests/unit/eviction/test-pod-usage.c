/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/pod-usage.h"
#include "tests/test.h"

/* An emptyDir, then layers and logs of each of two containers. */
static char paths[5][8] = { "v", "a", "a-log", "b", "b-log" };
static char *storage_paths[] = { paths[0], paths[1], paths[2], paths[3], paths[4], NULL };
static const uint64_t written[] = { 1000, 20, 3, 400, 50 };
static char a[] = "a", b[] = "b", request[] = "100";

static EvictionContainer containers[] = {
        { .name = a, .storage_request = 100, .storage_request_text = request },
        { .name = b, .memory_request = 7 },
};

static const EvictionCandidate candidate = {
        .priority = 5,
        .storage_request = 100,
        .containers = containers,
        .n_containers = N_ELEMENTS(containers),
        .storage_paths = storage_paths,
};

TEST(usage_of_a_pod_includes_all_its_directories)
{
        PodUsage usage = measure_pod_usage(&candidate, EVICTION_NODE_FS, written, 3);

        EXPECT(usage.is_known && usage.index == 3 && usage.priority == 5);
        EXPECT_EQ(usage.used, 1473);
        EXPECT_EQ(usage.requested, 100);
        usage = measure_pod_usage(&candidate, EVICTION_NODE_FS_INODES, written, 0);
        EXPECT_EQ(usage.requested, 0);
}

TEST(a_container_uses_its_layers_and_logs)
{
        ContainerUsage usages[N_ELEMENTS(containers)];

        measure_container_usages(&candidate, EVICTION_IMAGE_FS, written, usages);
        EXPECT_EQ(usages[0].used, 23);
        EXPECT_EQ(usages[0].requested, 100);
        EXPECT_STREQ(usages[0].request, "100");
        EXPECT_EQ(usages[1].used, 450);
        EXPECT(!usages[1].request);
        measure_container_usages(&candidate, EVICTION_NODE_FS_INODES, written, usages);
        EXPECT(usages[0].used == 0 && usages[1].used == 0);
}

TEST(memory_of_a_container_without_a_process_is_zero)
{
        ContainerUsage usages[N_ELEMENTS(containers)];

        measure_container_usages(&candidate, EVICTION_MEMORY, NULL, usages);
        EXPECT(usages[1].used == 0 && usages[1].requested == 7);
}
