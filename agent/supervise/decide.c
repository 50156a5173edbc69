/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/supervise/decide.h"

uint64_t back_off_next(uint64_t delay_usec, const BackOff *back_off) {
        if (delay_usec == 0)
                return back_off->initial_usec;
        if (delay_usec >= back_off->max_usec / 2)
                return back_off->max_usec;
        return delay_usec * 2;
}

static bool policy_restarts(RestartPolicy policy, int exit_code) {
        switch (policy) {
        case RESTART_POLICY_NEVER:
                return false;
        case RESTART_POLICY_ON_FAILURE:
                return exit_code != 0;
        case RESTART_POLICY_ALWAYS:
        case RESTART_POLICY_UNSET:
        case N_RESTART_POLICIES:
                break;
        }
        return true;
}

RestartDecision restart_decide(RestartPolicy policy, int exit_code, uint64_t ran_usec,
                               uint64_t next_delay_usec, const BackOff *back_off) {
        uint64_t delay = ran_usec > BACK_OFF_RESET_USEC ? 0 : next_delay_usec;

        if (!policy_restarts(policy, exit_code))
                return (RestartDecision){ RESTART_NOT, 0, next_delay_usec };
        return (RestartDecision){
                .verdict = delay == 0 ? RESTART_NOW : RESTART_LATER,
                .delay_usec = delay,
                .next_delay_usec = back_off_next(delay, back_off),
        };
}

PodPhase pod_phase(RestartPolicy policy, const ContainerStatus *containers, size_t n) {
        size_t waiting = 0, running = 0, stopped = 0, succeeded = 0;

        for (size_t i = 0; i < n; i++) {
                const ContainerState *state = &containers[i].state;

                if (state->kind == STATE_RUNNING)
                        running++;
                else if (state->kind == STATE_TERMINATED) {
                        stopped++;
                        succeeded += state->exit_code == 0;
                } else if (containers[i].last_state.kind == STATE_TERMINATED)
                        stopped++;
                else
                        waiting++;
        }
        if (waiting > 0 || n == 0)
                return POD_PENDING;
        if (running > 0)
                return POD_RUNNING;
        if (policy == RESTART_POLICY_ALWAYS)
                return POD_RUNNING;
        if (stopped == succeeded)
                return POD_SUCCEEDED;
        return policy == RESTART_POLICY_NEVER ? POD_FAILED : POD_RUNNING;
}

const char *exit_reason(int exit_code, bool oom_killed) {
        if (oom_killed && exit_code != 0)
                return "OOMKilled";
        return exit_code == 0 ? "Completed" : "Error";
}
