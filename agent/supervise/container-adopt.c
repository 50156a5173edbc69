/* SPDX-License-Identifier: Apache-2.0 */
/* How a container's life is taken up by a new agent: what was known of the present attempt is set,
 * and what came of it follows as news. */

#include "agent/supervise/container-internal.h"

#include <assert.h>

void container_adopt(ContainerLife *c, unsigned attempt, uint64_t next_delay_usec) {
        assert(c->state == LIFE_IDLE);
        c->attempt = attempt;
        c->attempt_is_used = true;
        c->oldest_remains = attempt;
        c->next_delay_usec = next_delay_usec;
}

void container_recover(ContainerLife *c, unsigned attempt, uint64_t now) {
        ContainerExit end = {
                .exit_code = 137, .is_unknown = true, .started_at = now, .finished_at = now
        };

        if (c->state != LIFE_IDLE || c->attempt_is_used || c->attempt > 0)
                return;
        container_adopt(c, attempt, 0);
        container_end_unseen(c, &end, "The container ran, and its end was not seen");
}

void container_recover_end(ContainerLife *c, unsigned attempt, const ContainerExit *end,
                           const char *reason) {
        if (c->state != LIFE_IDLE || c->attempt_is_used || c->attempt > 0)
                return;
        container_adopt(c, attempt, 0);
        container_record_end(c, end, reason, end->message);
        container_handle(c, EVENT_DONE);
}

void container_adopt_post_started(ContainerLife *c) {
        c->has_post_started = true;
}

void container_adopt_killed(ContainerLife *c) {
        c->is_killed = true;
}

void container_adopt_creating(ContainerLife *c) {
        assert(c->state == LIFE_IDLE);
        container_set_state(c, LIFE_CREATING);
}

void container_adopt_last(ContainerLife *c, unsigned attempt, const ContainerExit *end) {
        container_record_end(c, end, exit_reason(end->exit_code, end->oom_killed), end->message);
        container_state_done(&c->ended_last);
        c->ended_last = c->ended;
        c->ended = (ContainerState){ 0 };
}
