/* SPDX-License-Identifier: Apache-2.0 */
/* Lives of containers in a real shim with a real runtime. */
#include "tests/component/pod-world.h"

TEST(a_container_runs_and_its_exit_is_told)
{
        static const struct {
                const char *name, *script;
                int exit_code;
        } cases[] = {
                { "zero", "exit 0", 0 },
                { "one", "exit 1", 1 },
                { "killed", "exit 137", 137 },
                { "all", "exit 255", 255 },
        };
        World world;
        TestPod pod;

        world_init(&world);
        pod_up(&pod, &world, "exits");
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                ContainerSpec spec = { .name = cases[i].name, .script = cases[i].script };
                cleanup_free char *id = pod_run(&pod, &spec);
                const SandboxEvent *event = pod_expect(&pod, SANDBOX_STARTED, id);
                uint64_t started_at = event->started_at;

                EXPECT(event->pid > 1);
                event = pod_expect(&pod, SANDBOX_EXITED, id);
                EXPECT_EQ(event->exit_code, cases[i].exit_code);
                EXPECT_EQ(event->signal, 0);
                EXPECT(!event->oom_killed);
                EXPECT_EQ(event->started_at, started_at);
                EXPECT(event->finished_at >= started_at);
                EXPECT_STREQ(event->name, cases[i].name);
        }
        pod_down(&pod);
        world_done(&world);
}
