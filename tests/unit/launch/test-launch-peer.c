/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/launch/launch-peer.h"
#include "tests/test.h"

TEST(processes_of_the_unit_are_recognized_in_any_slice)
{
        static const char *const texts[] = {
                "0::/system.slice/mainstay.service\n",
                "0::/mainstay.service\n",
                "0::/kube.slice/kube-node.slice/mainstay.service\n",
                "0::/system.slice/mainstay.service/sub\n",
                "12:pids:/x\n1:name=systemd:/system.slice/mainstay.service\n0::/other\n",
        };

        for (size_t i = 0; i < N_ELEMENTS(texts); i++)
                EXPECT(cgroup_text_is_of_unit(texts[i], "mainstay.service"));
}

TEST(processes_outside_of_the_unit_are_not_recognized)
{
        static const char *const texts[] = {
                "",
                "\n",
                "0::",
                "0::/\n",
                "0::/system.slice\n",
                "0::/system.slice/xmainstay.service\n",
                "0::/system.slice/mainstay.servicex\n",
                "0::/system.slice/mainstay-api.service\n",
                "0::/user.slice/user-0.slice/session-1.scope/mainstay.service\n",
                /* groups that a container has created below its own group */
                "0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-1.scope/mainstay.service\n",
                "0::/kubepods/pod1/1/mainstay.service\n",
                "0::/kubepods/system.slice/mainstay.service\n",
                /* a path relative to a control group namespace, and another hierarchy */
                "0::/../../system.slice/mainstay.service\n",
                "5:cpu:/system.slice/mainstay.service\n",
        };

        for (size_t i = 0; i < N_ELEMENTS(texts); i++)
                EXPECT(!cgroup_text_is_of_unit(texts[i], "mainstay.service"));
}
