/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/machine/restart-policy.h"

#include "common/clock.h"
#include "tests/test.h"

static const BackOffLimits kubelet = { 10 * USEC_PER_SEC, 300 * USEC_PER_SEC };
static const ContainerRestartPolicy always = { .policy = RESTART_POLICY_ALWAYS };

TEST(the_first_restart_is_immediate_then_the_back_off_doubles_to_five_minutes)
{
        static const unsigned seconds[] = { 0, 10, 20, 40, 80, 160, 300, 300, 300 };
        uint64_t next = 0;

        for (size_t i = 0; i < N_ELEMENTS(seconds); i++) {
                RestartDecision d = decide_restart(&always, 1, USEC_PER_SEC, next, &kubelet);

                EXPECT_EQ(d.delay_usec, seconds[i] * USEC_PER_SEC);
                EXPECT_EQ(d.verdict, i == 0 ? RESTART_NOW : RESTART_LATER);
                next = d.next_delay_usec;
        }
}

TEST(ten_minutes_of_running_reset_the_back_off)
{
        RestartDecision d =
                decide_restart(&always, 1, BACK_OFF_RESET_USEC + 1, 300 * USEC_PER_SEC, &kubelet);

        EXPECT_EQ(d.verdict, RESTART_NOW);
        EXPECT_EQ(d.next_delay_usec, kubelet.initial_usec);
        d = decide_restart(&always, 1, BACK_OFF_RESET_USEC, 300 * USEC_PER_SEC, &kubelet);
        EXPECT_EQ(d.delay_usec, 300 * USEC_PER_SEC);
}

TEST(restart_policies_depend_on_the_exit_code)
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
                        decide_restart(&(ContainerRestartPolicy){ .policy = cases[i].policy },
                                       cases[i].exit_code, 0, 0, &kubelet);

                EXPECT_EQ(d.verdict != RESTART_NOT, cases[i].again);
        }
}

TEST(a_maximum_below_the_initial_back_off_limits_it)
{
        static const BackOffLimits quick = { USEC_PER_SEC, USEC_PER_SEC };

        EXPECT_EQ(back_off_next_delay(0, &quick), USEC_PER_SEC);
        EXPECT_EQ(back_off_next_delay(USEC_PER_SEC, &quick), USEC_PER_SEC);
}

static RestartRule rule(RestartAction action, RestartRuleExitCodes *codes) {
        return (RestartRule){ action, codes };
}

TEST(the_first_matching_restart_rule_overrides_the_policy)
{
        int64_t known[] = { 42, 43 }, one[] = { 1 };
        RestartRuleExitCodes in = { EXIT_CODE_IN, { known, 2 } };
        RestartRuleExitCodes not_in = { EXIT_CODE_NOT_IN, { one, 1 } };
        RestartRule rules[] = { rule(RESTART_ACTION_RESTART, &in),
                                rule(RESTART_ACTION_RESTART_ALL, &not_in) };
        ContainerRestartPolicy terms = { .policy = RESTART_POLICY_NEVER,
                                         .rules = rules,
                                         .n_rules = 2 };

        EXPECT_EQ(decide_restart(&terms, 42, 0, 0, &kubelet).verdict, RESTART_NOW);
        EXPECT_EQ(decide_restart(&terms, 43, 0, 1, &kubelet).verdict, RESTART_LATER);
        EXPECT_EQ(decide_restart(&terms, 1, 0, 0, &kubelet).verdict, RESTART_NOT);
        EXPECT_EQ(decide_restart(&terms, 7, 0, 0, &kubelet).verdict, RESTART_ALL);
        EXPECT_EQ(decide_restart(&terms, 7, 0, 5, &kubelet).delay_usec, 5);
        terms.policy = RESTART_POLICY_ALWAYS;
        EXPECT_EQ(decide_restart(&terms, 1, 0, 0, &kubelet).verdict, RESTART_NOW);
}

TEST(a_succeeded_init_container_never_restarts)
{
        RestartRuleExitCodes any = { EXIT_CODE_NOT_IN, { NULL, 0 } };
        RestartRule rules[] = { rule(RESTART_ACTION_RESTART, &any) };
        ContainerRestartPolicy terms = { RESTART_POLICY_NEVER, rules, 1, .is_init = true };

        EXPECT_EQ(decide_restart(&terms, 0, 0, 0, &kubelet).verdict, RESTART_NOT);
        EXPECT_EQ(decide_restart(&terms, 9, 0, 0, &kubelet).verdict, RESTART_NOW);
}

TEST(a_containers_restart_policy_overrides_its_pods)
{
        enum {
                U = RESTART_POLICY_UNSET,
                A = RESTART_POLICY_ALWAYS,
                F = RESTART_POLICY_ON_FAILURE,
                N = RESTART_POLICY_NEVER
        };
        static const struct {
                bool is_init;
                int pod, own, expected;
        } cases[] = {
                { false, A, U, A }, { false, N, U, N }, { false, N, A, A }, { false, A, N, N },
                { true, A, U, F },  { true, F, U, F },  { true, N, U, N },  { true, A, N, N },
                { true, N, F, F },  { true, N, A, A },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                Container container = { .restart_policy = (RestartPolicy) cases[i].own };
                PodSpec spec = { .restart_policy = (RestartPolicy) cases[i].pod };

                if (cases[i].is_init)
                        spec.init_containers.items = &container, spec.init_containers.n = 1;
                else
                        spec.containers.items = &container, spec.containers.n = 1;
                EXPECT_EQ(container_restart_policy(&spec, &container).policy, cases[i].expected);
        }
}
