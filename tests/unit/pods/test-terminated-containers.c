/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/container/terminated-containers.h"
#include "common/cleanup.h"
#include "tests/test.h"

TEST(a_terminated_container_is_found_by_name_and_attempt)
{
        char text[] = "web 3 7 Error 100 200 it\x1f"
                      "failed\n"
                      "web-2 0 0 Completed 5 6 \n";
        const TerminatedContainers terminated = { .text = text };
        cleanup_with(terminated_container_done) TerminatedContainer found = { 0 };

        REQUIRE(terminated_containers_find(&terminated, "web", 3, &found));
        EXPECT_EQ(found.exit.exit_code, 7);
        EXPECT_STREQ(found.reason, "Error");
        EXPECT_EQ(found.exit.started_at, 100);
        EXPECT_EQ(found.exit.finished_at, 200);
        EXPECT_STREQ(found.exit.message, "it\nfailed");
        terminated_container_done(&found);
        REQUIRE(terminated_containers_find(&terminated, "web-2", 0, &found));
        EXPECT(found.exit.exit_code == 0 && !found.exit.message);
}

TEST(a_terminated_container_has_its_checkpoint_and_its_previous_state)
{
        char text[] = "-web 3 137 OOMKilled 10 20 too\x1f"
                      "much\n"
                      "web 3 7 Error 100 200 \n"
                      "+web 3 0 15 sha256:ab 0 r 1:2:\n"
                      "web-2 0 0 Completed 5 6 \n";
        const TerminatedContainers terminated = { .text = text };
        cleanup_with(terminated_container_done) TerminatedContainer found = { 0 };

        REQUIRE(terminated_containers_find(&terminated, "web", 3, &found));
        EXPECT_EQ(found.exit.exit_code, 7);
        REQUIRE(found.has_previous);
        EXPECT_EQ(found.previous.exit_code, 137);
        EXPECT_STREQ(found.previous_reason, "OOMKilled");
        EXPECT_STREQ(found.previous.message, "too\nmuch");
        EXPECT_STREQ(found.checkpoint, "0 15 sha256:ab 0 r 1:2:");
        terminated_container_done(&found);
        REQUIRE(terminated_containers_find(&terminated, "web-2", 0, &found));
        EXPECT(!found.has_previous && !found.checkpoint);
}

TEST(another_attempt_or_a_damaged_line_is_not_found)
{
        char text[] = "web 3 7 Error 100 200 x\nweb 4 broken\n";
        const TerminatedContainers terminated = { .text = text }, none = { 0 };
        TerminatedContainer found;

        EXPECT(!terminated_containers_find(&terminated, "web", 2, &found));
        EXPECT(!terminated_containers_find(&terminated, "web", 4, &found));
        EXPECT(!terminated_containers_find(&terminated, "we", 3, &found));
        EXPECT(!terminated_containers_find(&none, "web", 3, &found));
}

TEST(only_pods_whose_containers_may_terminate_permanently_may_complete)
{
        Container own = { .restart_policy = RESTART_POLICY_NEVER }, inherits = { 0 };
        PodSpec spec = { .restart_policy = RESTART_POLICY_ALWAYS,
                         .containers = { .items = &inherits, .n = 1 } };

        EXPECT(!pod_may_complete(&spec));
        spec.containers.items = &own;
        EXPECT(pod_may_complete(&spec));
        spec = (PodSpec){ .restart_policy = RESTART_POLICY_ON_FAILURE };
        EXPECT(pod_may_complete(&spec));
}
