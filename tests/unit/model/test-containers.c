/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/containers.h"
#include "agent/model/qos.h"

#include "tests/test.h"

static int64_t memory(const Container *container) {
        const Quantity *request = &container->resources.requests.memory;

        return request->text ? request->value : -1;
}

enum {
        N_MAX = 5
};

TEST(pod_amount_is_maximum_of_running_sum_and_init_containers)
{
        /* 'i' init, 's' sidecar, 'm' main, each with its amount. */
        static const struct {
                const char *roles;
                int64_t amounts[N_MAX], expected;
        } cases[] = {
                { "mm", { 3, 4 }, 7 },
                { "im", { 9, 4 }, 9 },
                { "im", { 2, 4 }, 4 },
                { "iim", { 5, 6, 4 }, 6 },
                { "sm", { 2, 4 }, 6 },
                { "sim", { 2, 9, 4 }, 11 },
                { "ism", { 9, 2, 4 }, 9 },
                { "ssim", { 1, 2, 3, 1 }, 6 },
                { "mm", { INT64_MAX, 4 }, INT64_MAX },
                { "m", { -1 }, -1 },
                { "im", { -1, 4 }, 4 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                static char text[] = "x";
                Container containers[N_MAX] = { 0 };
                size_t n = strlen(cases[i].roles), n_init = strcspn(cases[i].roles, "m");
                PodSpec spec = { .init_containers = { containers, n_init },
                                 .containers = { containers + n_init, n - n_init } };

                for (size_t c = 0; c < n; c++) {
                        if (cases[i].roles[c] == 's')
                                containers[c].restart_policy = RESTART_POLICY_ALWAYS;
                        if (cases[i].amounts[c] >= 0)
                                containers[c].resources.requests.memory =
                                        (Quantity){ text, cases[i].amounts[c], 0 };
                }
                EXPECT_EQ(pod_aggregate_amount(&spec, memory), cases[i].expected);
        }
}

TEST(restartable_init_container_is_a_sidecar)
{
        Container containers[] = { { 0 },
                                   { .restart_policy = RESTART_POLICY_ALWAYS },
                                   { .restart_policy = RESTART_POLICY_ALWAYS } };
        PodSpec spec = { .init_containers = { containers, 2 },
                         .containers = { containers + 2, 1 } };

        EXPECT_EQ(pod_count_containers(&spec), 3);
        EXPECT_EQ(container_role(&spec, pod_nth_container(&spec, 0)), ROLE_INIT);
        EXPECT_EQ(container_role(&spec, pod_nth_container(&spec, 1)), ROLE_SIDECAR);
        EXPECT_EQ(container_role(&spec, pod_nth_container(&spec, 2)), ROLE_MAIN);
        EXPECT(pod_nth_container(&spec, 3) == NULL);
}

TEST(ephemeral_containers_come_last_and_request_nothing)
{
        char text[] = "1";
        Container containers[] = { { .name = (char[]){ "a" } }, { .name = (char[]){ "b" } } };
        Container ephemeral = { .name = (char[]){ "e" },
                                .resources.requests.memory = { text, 1, 1000 } };
        PodSpec spec = { .init_containers = { containers, 1 },
                         .containers = { containers + 1, 1 },
                         .ephemeral_containers = { &ephemeral, 1 } };
        Pod pod = { .spec = spec };

        EXPECT_EQ(pod_count_containers(&spec), 3);
        EXPECT_EQ(container_role(&spec, pod_nth_container(&spec, 1)), ROLE_MAIN);
        EXPECT_EQ(container_role(&spec, pod_nth_container(&spec, 2)), ROLE_EPHEMERAL);
        EXPECT(pod_nth_container(&spec, 3) == NULL);
        EXPECT(pod_find_container(&pod, "e") == &ephemeral);
        EXPECT_EQ(pod_aggregate_amount(&spec, memory), -1);
        EXPECT_EQ(pod_qos_class(&spec), QOS_BEST_EFFORT);
}
