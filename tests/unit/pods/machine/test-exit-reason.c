/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/machine/exit-reason.h"

#include "tests/test.h"

TEST(a_terminated_container_has_kubernetes_reason)
{
        EXPECT_STREQ(container_exit_reason(0, false), "Completed");
        EXPECT_STREQ(container_exit_reason(1, false), "Error");
        EXPECT_STREQ(container_exit_reason(137, true), "OOMKilled");
        EXPECT_STREQ(container_exit_reason(0, true), "Completed");
}
