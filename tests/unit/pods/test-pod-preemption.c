/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/pod-preemption.h"
#include "common/cleanup.h"
#include "tests/test.h"

/* "g:100/64": the class, CPU in thousandths, memory; the number of pods is 1. */
static PreemptionCandidate candidate(QosClass qos, int64_t cpu, int64_t memory) {
        return (PreemptionCandidate){ .qos = qos,
                                      .requests = { { [RESOURCE_CPU] = cpu,
                                                      [RESOURCE_MEMORY] = memory,
                                                      [NODE_PODS] = 1 } } };
}

/* 'expected' contains the letters of the chosen candidates. */
static void expect_chosen(PreemptionCandidate *candidates, size_t n, const NodeUsage *missing,
                          const char *expected) {
        NodeUsage unmet;
        char chosen[16] = "";
        size_t n_chosen = 0;

        EXPECT(choose_pods_to_preempt(candidates, n, missing, &unmet));
        for (size_t i = 0; i < n; i++)
                if (candidates[i].is_chosen)
                        chosen[n_chosen++] = (char) ('a' + i);
        EXPECT_STREQ(chosen, expected);
}

TEST(best_effort_pods_go_first_then_burstable_then_guaranteed)
{
        PreemptionCandidate all[] = {
                candidate(QOS_GUARANTEED, 100, 100),
                candidate(QOS_BURSTABLE, 100, 100),
                candidate(QOS_BEST_EFFORT, 0, 0),
        };

        expect_chosen(all, 3, &(NodeUsage){ { [NODE_PODS] = 1 } }, "c");
        expect_chosen(all, 3, &(NodeUsage){ { [NODE_PODS] = 2 } }, "bc");
        expect_chosen(all, 3, &(NodeUsage){ { [NODE_PODS] = 3 } }, "abc");
        expect_chosen(all, 3, &(NodeUsage){ { [RESOURCE_CPU] = 100 } }, "b");
        expect_chosen(all, 3, &(NodeUsage){ { [RESOURCE_CPU] = 101 } }, "ab");
        expect_chosen(all, 3, &(NodeUsage){ { [RESOURCE_CPU] = 101, [NODE_PODS] = 3 } }, "abc");
}

TEST(fewest_and_smallest_pods_are_preempted)
{
        PreemptionCandidate all[] = {
                candidate(QOS_BURSTABLE, 100, 50), candidate(QOS_BURSTABLE, 300, 50),
                candidate(QOS_BURSTABLE, 250, 70), candidate(QOS_BURSTABLE, 250, 60),
                candidate(QOS_BURSTABLE, 250, 60),
        };

        expect_chosen(all, 5, &(NodeUsage){ { [RESOURCE_CPU] = 90 } }, "a");
        /* Both b and c would suffice; b requests less memory. d and e are equal, so the later one
         * is chosen. */
        expect_chosen(all, 3, &(NodeUsage){ { [RESOURCE_CPU] = 200 } }, "b");
        expect_chosen(all + 2, 3, &(NodeUsage){ { [RESOURCE_CPU] = 250 } }, "c");
        expect_chosen(all, 5, &(NodeUsage){ { [RESOURCE_CPU] = 350 } }, "ab");
        expect_chosen(all, 5, &(NodeUsage){ { [RESOURCE_CPU] = 1150 } }, "abcde");
}

TEST(each_missing_resource_has_the_same_weight)
{
        /* a frees all of the missing CPU and none of the memory, c half of each: their distances
         * are 1 and 0.5. */
        PreemptionCandidate all[] = {
                candidate(QOS_BURSTABLE, 100, 0),
                candidate(QOS_BURSTABLE, 0, 1000),
                candidate(QOS_BURSTABLE, 50, 500),
                candidate(QOS_BURSTABLE, 50, 500),
        };

        expect_chosen(all, 4, &(NodeUsage){ { [RESOURCE_CPU] = 100, [RESOURCE_MEMORY] = 1000 } },
                      "cd");
}

TEST(no_pod_is_preempted_if_all_of_them_are_not_enough)
{
        PreemptionCandidate all[] = { candidate(QOS_BURSTABLE, 100, 10) };
        const NodeUsage missing = {
                { [RESOURCE_CPU] = 150, [RESOURCE_MEMORY] = 10, [NODE_PODS] = 3 }
        };
        cleanup_free char *text = NULL;
        NodeUsage unmet;

        EXPECT(!choose_pods_to_preempt(all, 1, &missing, &unmet));
        EXPECT(!all[0].is_chosen);
        text = format_missing_resources(&unmet);
        EXPECT_STREQ(text, "[(res: pods, q: 2), (res: cpu, q: 50), ]");
        EXPECT(!choose_pods_to_preempt(NULL, 0, &missing, &unmet));
        EXPECT_EQ(unmet.amounts[RESOURCE_MEMORY], 10);
}

TEST(critical_and_higher_priority_pods_preempt_api_server_pods)
{
        Pod pod = { .spec.priority = { true, 2000001000 } };
        Pod victim = { .spec.priority = { true, 1000 } };

        EXPECT(!pod_may_preempt(&pod, &victim)); /* a pod of a file */
        EXPECT_EQ(
                string_map_set(&victim.metadata.annotations, "kubernetes.io/config.source", "api"),
                0);
        EXPECT(pod_may_preempt(&pod, &victim));
        victim.spec.priority.value = 2000000000;
        EXPECT(pod_may_preempt(&pod, &victim));
        victim.spec.priority.value = 2000001000;
        EXPECT(!pod_may_preempt(&pod, &victim));
        string_map_done(&victim.metadata.annotations);
}
