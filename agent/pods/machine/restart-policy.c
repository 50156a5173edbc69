/* SPDX-License-Identifier: Apache-2.0 */
/* Decides according to restartPolicy and restartPolicyRules, and computes the delay of
 * CrashLoopBackOff. */

#include "agent/pods/machine/restart-policy.h"

#include "agent/model/containers.h"

ContainerRestartPolicy container_restart_policy(const PodSpec *spec, const Container *container) {
        bool is_own = container->restart_policy != RESTART_POLICY_UNSET;
        ContainerRole role = container_role(spec, container);
        ContainerRestartPolicy terms = {
                .policy = container_own_restart_policy(spec, container),
                .rules = container->restart_policy_rules.items,
                .n_rules = is_own ? container->restart_policy_rules.n : 0,
                .is_init = role == ROLE_INIT,
        };

        if (role == ROLE_EPHEMERAL)
                terms.policy = RESTART_POLICY_NEVER;

        if (terms.is_init && terms.policy != RESTART_POLICY_NEVER)
                terms.policy = RESTART_POLICY_ON_FAILURE;
        return terms;
}

bool pod_may_restart_all_containers(const PodSpec *spec) {
        const Container *container;

        pod_foreach_container(container, spec)
                for (size_t i = 0; i < container->restart_policy_rules.n; i++)
                        if (container->restart_policy_rules.items[i].action ==
                            RESTART_ACTION_RESTART_ALL)
                                return true;
        return false;
}

static bool policy_restarts_exit(RestartPolicy policy, int exit_code) {
        switch (policy) {
        case RESTART_POLICY_NEVER:
                return false;
        case RESTART_POLICY_ON_FAILURE:
                return exit_code != 0;
        case RESTART_POLICY_ALWAYS:
        case RESTART_POLICY_UNSET:
        case RESTART_POLICY_OTHER:
        case N_RESTART_POLICIES:
                break;
        }
        return true;
}

static bool restart_rule_matches(const RestartRule *rule, int exit_code) {
        const RestartRuleExitCodes *codes = rule->exit_codes;
        bool found = false;

        for (size_t i = 0; codes && i < codes->values.n; i++)
                found = found || codes->values.items[i] == exit_code;
        return codes && codes->operator!= EXIT_CODE_OPERATOR_UNSET &&
                        found ==(codes->operator== EXIT_CODE_IN);
}

/* The action of the first matching rule; unset if none matches. */
static RestartAction find_restart_action(const ContainerRestartPolicy *terms, int exit_code) {
        for (size_t i = 0; i < terms->n_rules; i++)
                if (restart_rule_matches(&terms->rules[i], exit_code))
                        return terms->rules[i].action;
        return RESTART_ACTION_UNSET;
}

static bool should_restart_container(const ContainerRestartPolicy *terms, RestartAction action,
                                     int exit_code) {
        if (terms->is_init && exit_code == 0)
                return false;
        return action == RESTART_ACTION_RESTART || policy_restarts_exit(terms->policy, exit_code);
}

RestartDecision decide_restart(const ContainerRestartPolicy *terms, int exit_code,
                               uint64_t ran_usec, uint64_t next_delay_usec,
                               const BackOffLimits *back_off) {
        uint64_t delay = ran_usec > BACK_OFF_RESET_USEC ? 0 : next_delay_usec;
        RestartAction action = find_restart_action(terms, exit_code);
        RestartDecision decision = {
                .verdict = delay == 0 ? RESTART_NOW : RESTART_LATER,
                .delay_usec = delay,
                .next_delay_usec = back_off_next_delay(delay, back_off),
        };

        if (action == RESTART_ACTION_RESTART_ALL)
                decision.verdict = RESTART_ALL;
        else if (!should_restart_container(terms, action, exit_code))
                return (RestartDecision){ RESTART_NOT, 0, next_delay_usec };
        return decision;
}
