/* SPDX-License-Identifier: Apache-2.0 */
/* What others ask of a container's life. Nothing here changes it. */

#include "agent/supervise/container-internal.h"
#include "common/clock.h"

unsigned container_attempt(const ContainerLife *c) {
        return c->attempt;
}

bool container_is_running(const ContainerLife *c) {
        return container_has_process(c) && c->started_at > 0;
}

bool container_has_run(const ContainerLife *c, unsigned attempt) {
        return c->attempt_is_used && c->attempt <= attempt;
}

bool container_has_begun(const ContainerLife *c) {
        return c->attempt_is_used || c->attempt > 0;
}

uint64_t container_next_delay(const ContainerLife *c) {
        return c->next_delay_usec;
}

bool container_has_process(const ContainerLife *c) {
        return life_facts[c->state].has_process;
}

bool container_is_up(const ContainerLife *c) {
        return c->state == LIFE_UP || (container_is_stopping(c) && c->started_at > 0);
}

bool container_is_stopping(const ContainerLife *c) {
        return c->state == LIFE_PRE_STOP || c->state == LIFE_STOPPING;
}

bool container_is_killed(const ContainerLife *c) {
        return c->is_killed;
}

bool container_has_post_started(const ContainerLife *c) {
        return c->has_post_started;
}

uint64_t container_started_at(const ContainerLife *c) {
        return c->started_at;
}

bool container_is_in_back_off(const ContainerLife *c) {
        return c->state == LIFE_BACK_OFF;
}

bool container_is_finished(const ContainerLife *c) {
        return c->state == LIFE_FINISHED;
}

bool container_has_succeeded(const ContainerLife *c) {
        return c->state == LIFE_FINISHED && c->ended.kind == STATE_TERMINATED &&
               c->ended.exit_code == 0;
}

const ContainerState *container_end(const ContainerLife *c) {
        return c->state == LIFE_FINISHED && c->ended.kind == STATE_TERMINATED ? &c->ended : NULL;
}

uint64_t container_finished_at(const ContainerLife *c) {
        return c->ended.finished_at;
}

bool container_has_started(const ContainerLife *c) {
        return c->state == LIFE_UP;
}

bool container_wants_all(const ContainerLife *c, uint64_t *ret_delay_usec) {
        if (!c->wants_all)
                return false;
        *ret_delay_usec = container_remaining_delay(c->retry_delay_usec, c->ended.finished_at);
        return true;
}

bool container_is_waiting(const ContainerLife *c) {
        return c->state == LIFE_IDLE;
}

bool container_waits_for_image(const ContainerLife *c) {
        return c->state == LIFE_BACK_OFF && c->image_delay_usec > 0;
}

uint64_t container_remaining_delay(uint64_t delay_usec, uint64_t finished_at) {
        uint64_t now = now_realtime_usec();
        uint64_t passed = now > finished_at ? now - finished_at : 0;

        return delay_usec > passed ? delay_usec - passed : 0;
}
