/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervise/decide.h"

#include "common/clock.h"
#include "tests/test.h"

static const BackOff kubelet = { 10 * USEC_PER_SEC, 300 * USEC_PER_SEC };

TEST(the_first_restart_is_immediate_then_the_wait_doubles_to_five_minutes)
{
        static const unsigned seconds[] = { 0, 10, 20, 40, 80, 160, 300, 300, 300 };
        uint64_t next = 0;

        for (size_t i = 0; i < N_ELEMENTS(seconds); i++) {
                RestartDecision d =
                        restart_decide(RESTART_POLICY_ALWAYS, 1, USEC_PER_SEC, next, &kubelet);

                EXPECT_EQ(d.delay_usec, seconds[i] * USEC_PER_SEC);
                EXPECT_EQ(d.verdict, i == 0 ? RESTART_NOW : RESTART_LATER);
                next = d.next_delay_usec;
        }
}

TEST(ten_minutes_of_running_forgive_all_earlier_exits)
{
        RestartDecision d = restart_decide(RESTART_POLICY_ALWAYS, 1, BACK_OFF_RESET_USEC + 1,
                                           300 * USEC_PER_SEC, &kubelet);

        EXPECT_EQ(d.verdict, RESTART_NOW);
        EXPECT_EQ(d.next_delay_usec, kubelet.initial_usec);
        d = restart_decide(RESTART_POLICY_ALWAYS, 1, BACK_OFF_RESET_USEC, 300 * USEC_PER_SEC,
                           &kubelet);
        EXPECT_EQ(d.delay_usec, 300 * USEC_PER_SEC);
}

TEST(policies_restart_what_they_say)
{
        static const struct {
                RestartPolicy policy;
                int exit_code;
                bool again;
        } cases[] = {
                { RESTART_POLICY_ALWAYS, 0, true },       { RESTART_POLICY_ALWAYS, 1, true },
                { RESTART_POLICY_ON_FAILURE, 0, false },  { RESTART_POLICY_ON_FAILURE, 1, true },
                { RESTART_POLICY_ON_FAILURE, 137, true }, { RESTART_POLICY_NEVER, 0, false },
                { RESTART_POLICY_NEVER, 255, false },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                RestartDecision d =
                        restart_decide(cases[i].policy, cases[i].exit_code, 0, 0, &kubelet);

                EXPECT_EQ(d.verdict != RESTART_NOT, cases[i].again);
        }
}

TEST(a_maximum_below_the_initial_wait_is_the_wait)
{
        static const BackOff quick = { USEC_PER_SEC, USEC_PER_SEC };

        EXPECT_EQ(back_off_next(0, &quick), USEC_PER_SEC);
        EXPECT_EQ(back_off_next(USEC_PER_SEC, &quick), USEC_PER_SEC);
}

TEST(the_phase_is_the_kubelets)
{
        enum {
                W = STATE_WAITING,
                R = STATE_RUNNING,
                T = STATE_TERMINATED
        };
        static const struct {
                RestartPolicy policy;
                struct {
                        int state, exit_code, last;
                } containers[2];
                PodPhase phase;
        } cases[] = {
                { RESTART_POLICY_ALWAYS, { { W, 0, 0 }, { R, 0, 0 } }, POD_PENDING },
                { RESTART_POLICY_ALWAYS, { { R, 0, 0 }, { R, 0, 0 } }, POD_RUNNING },
                { RESTART_POLICY_ALWAYS, { { W, 0, T }, { W, 0, T } }, POD_RUNNING },
                { RESTART_POLICY_ALWAYS, { { T, 1, 0 }, { T, 0, 0 } }, POD_RUNNING },
                { RESTART_POLICY_NEVER, { { T, 0, 0 }, { T, 0, 0 } }, POD_SUCCEEDED },
                { RESTART_POLICY_NEVER, { { T, 0, 0 }, { T, 3, 0 } }, POD_FAILED },
                { RESTART_POLICY_NEVER, { { T, 0, 0 }, { R, 0, 0 } }, POD_RUNNING },
                { RESTART_POLICY_ON_FAILURE, { { T, 0, 0 }, { T, 0, 0 } }, POD_SUCCEEDED },
                { RESTART_POLICY_ON_FAILURE, { { T, 0, 0 }, { W, 0, T } }, POD_RUNNING },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                ContainerStatus containers[2] = { 0 };

                for (size_t c = 0; c < 2; c++) {
                        containers[c].state.kind =
                                (ContainerStateKind) cases[i].containers[c].state;
                        containers[c].state.exit_code = cases[i].containers[c].exit_code;
                        containers[c].last_state.kind =
                                (ContainerStateKind) cases[i].containers[c].last;
                }
                EXPECT_EQ(pod_phase(cases[i].policy, containers, 2), cases[i].phase);
        }
}

TEST(an_end_has_kubernetes_reason)
{
        EXPECT_STREQ(exit_reason(0, false), "Completed");
        EXPECT_STREQ(exit_reason(1, false), "Error");
        EXPECT_STREQ(exit_reason(137, true), "OOMKilled");
        EXPECT_STREQ(exit_reason(0, true), "Completed");
}
