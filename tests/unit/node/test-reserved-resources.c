/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/reserved-resources.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

static void collect_reason(const PodEvent *event, void *userdata) {
        EXPECT(!event->pod);
        (void) fprintf(userdata, "%s ", event->reason);
}

TEST(the_cgroup_of_all_pods_is_limited_to_unreserved_resources)
{
        char only_system[] = "system-reserved", pods[] = "pods";
        char *without[] = { only_system, NULL }, *with[] = { pods, NULL };
        Config config = { .system = { .cpu_milli = 100, .memory = 1 << 20, .pids = 10 },
                          .kube = { .cpu_milli = 50, .memory = 2 << 20, .pids = 5 } };
        NodeReservation reserved = find_enforced_reservation(&config);

        EXPECT_EQ(reserved.cpu_milli, 0); /* nothing is set */
        config.system_reserved.n = 1;
        reserved = find_enforced_reservation(&config);
        EXPECT_EQ(reserved.cpu_milli, 150);
        EXPECT_EQ(reserved.memory, 3 << 20);
        EXPECT_EQ(reserved.pids, 15);
        config.enforce_node_allocatable = without;
        EXPECT_EQ(find_enforced_reservation(&config).memory, 0);
        config.enforce_node_allocatable = with;
        EXPECT_EQ(find_enforced_reservation(&config).memory, 3 << 20);
}

static char *report_start(const Config *config, int64_t storage) {
        char *reasons = NULL;
        size_t length;
        FILE *out = open_memstream(&reasons, &length);

        REQUIRE(out);
        report_node_start(config, storage, collect_reason, out);
        return memstream_finish(out, &reasons);
}

TEST(the_start_of_a_node_is_reported_as_the_kubelet_does)
{
        char none[] = "none";
        char *nothing[] = { none, NULL };
        Config config = { 0 };
        cleanup_free char *usual = report_start(&config, 1000), *other = NULL;

        EXPECT_STREQ(usual, "Starting NodeAllocatableEnforced ");
        config.enforce_node_allocatable = nothing;
        other = report_start(&config, 0);
        EXPECT_STREQ(other, "Starting InvalidDiskCapacity ");
}
