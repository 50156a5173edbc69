/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/pod-termination.h"
#include "common/clock.h"
#include "tests/test.h"

static PodSpec spec_with_grace(int64_t seconds) {
        return (PodSpec){ .termination_grace_period_seconds = { .is_set = true,
                                                                .value = seconds } };
}

TEST(the_grace_period_is_the_pods_or_that_of_the_deletion_request)
{
        PodSpec spec = spec_with_grace(30), none = spec_with_grace(0);
        PodTermination termination = { 0 };

        EXPECT_EQ(pod_grace_period_usec(&termination, &spec, 0), 30 * USEC_PER_SEC);
        EXPECT_EQ(pod_grace_period_usec(&termination, &none, 0), USEC_PER_SEC);
        termination = (PodTermination){ .has_grace = true, .grace_seconds = 5 };
        EXPECT_EQ(pod_grace_period_usec(&termination, &spec, 0), 5 * USEC_PER_SEC);
        termination.grace_seconds = 0;
        EXPECT_EQ(pod_grace_period_usec(&termination, &spec, 0), USEC_PER_SEC);
}

TEST(a_failure_limits_the_grace_period)
{
        PodSpec spec = spec_with_grace(30);
        const PodTermination termination = { 0 };

        EXPECT_EQ(pod_grace_period_usec(&termination, &spec, 2 * USEC_PER_SEC), 2 * USEC_PER_SEC);
        EXPECT_EQ(pod_grace_period_usec(&termination, &spec, 90 * USEC_PER_SEC), 30 * USEC_PER_SEC);
}

TEST(a_container_stopped_after_others_has_the_remaining_grace_period_or_two_seconds)
{
        const uint64_t grace = 30 * USEC_PER_SEC;
        PodTermination termination = { 0 };
        uint64_t rest;

        EXPECT_EQ(pod_remaining_grace_usec(&termination, grace), grace);
        EXPECT(!pod_is_beyond_grace(&termination, grace));
        termination.stopping_since = now_awake_usec() - 10 * USEC_PER_SEC;
        rest = pod_remaining_grace_usec(&termination, grace);
        EXPECT(rest <= 20 * USEC_PER_SEC && rest > 10 * USEC_PER_SEC);
        EXPECT(!pod_is_beyond_grace(&termination, grace));
        EXPECT(pod_is_beyond_grace(&termination, 10 * USEC_PER_SEC));
        EXPECT_EQ(pod_remaining_grace_usec(&termination, 10 * USEC_PER_SEC), 2 * USEC_PER_SEC);
        EXPECT_EQ(pod_remaining_grace_usec(&termination, USEC_PER_SEC), USEC_PER_SEC);
}
