/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a pod's containers (order.c), done. Level-triggered like the rest of the pod: facts
 * are looked at anew each time, so that an agent that comes in the middle goes on from there.
 *
 * A restart of all containers has three parts: all end, each is put back to waiting, and what is
 * left of the back-off of the one that asked is sat out. Which attempts are of before it is in
 * their notes: the pod's generation, which counts such restarts. */

#include "agent/supervise/pod-internal.h"
#include "common/clock.h"
#include "common/log.h"

/* Who is ended late, or for a restart of all, still has this long, as with the kubelet. */
#define GRACE_MIN_USEC (2 * USEC_PER_SEC)

static void look(PodLife *life) {
        for (size_t i = 0; i < life->n_containers; i++) {
                const PodContainer *c = &life->containers[i];

                life->order[i] = (OrderEntry){
                        .role = container_role(&life->pod->spec, c->spec),
                        .has_run = c->has_run,
                        .has_started = container_has_started(c->life) && probers_have_started(c),
                        .is_waiting = container_is_waiting(c->life),
                        .is_finished = container_is_finished(c->life),
                        .has_succeeded = container_has_succeeded(c->life),
                };
        }
}

PodCourse pod_life_course(PodLife *life) {
        look(life);
        return order_course(life->order, life->n_containers);
}

bool pod_life_is_ending(const PodLife *life) {
        return !life->is_wanted || pod_life_has_failed(life) ||
               life->all_restart == ALL_RESTART_ENDING;
}

bool pod_life_goes_on(PodLife *life) {
        PodCourse course = pod_life_course(life);

        if (!life->is_wanted || pod_life_has_failed(life))
                return false;
        return life->all_restart != ALL_RESTART_NONE || course == COURSE_INITIALIZING ||
               course == COURSE_RUNNING;
}

bool pod_life_lets_start(PodContainer *c) {
        PodLife *life = c->pod;

        look(life);
        return pod_life_is_ready(life) && !pod_life_is_ending(life) &&
               life->all_restart == ALL_RESTART_NONE &&
               order_allows(life->order, life->n_containers, (size_t) (c - life->containers));
}

uint64_t pod_life_grace_usec(const PodLife *life) {
        int64_t seconds = life->pod->spec.termination_grace_period_seconds.value;
        uint64_t grace;

        if (life->has_grace)
                seconds = life->grace_seconds;
        /* Even a grace of nothing is a second, as with the kubelet. */
        grace = (uint64_t) MIN(MAX(seconds, 1), INT32_MAX) * USEC_PER_SEC;
        return life->failure.grace_usec > 0 ? MIN(grace, life->failure.grace_usec) : grace;
}

uint64_t pod_life_rest_of_grace_usec(const PodLife *life) {
        uint64_t grace = pod_life_grace_usec(life);
        uint64_t passed = life->ending_since > 0 ? now_boottime_usec() - life->ending_since : 0;

        if (life->all_restart == ALL_RESTART_ENDING)
                return GRACE_MIN_USEC;
        /* Who had to wait for others has what they left. */
        return passed < grace ? grace - passed : MIN(GRACE_MIN_USEC, grace);
}

/* ---- a restart of all ---- */

static int on_held(sd_event_source *source, uint64_t usec, void *userdata) {
        PodLife *life = userdata;

        life->order_timer = sd_event_source_disable_unref(life->order_timer);
        life->all_restart = ALL_RESTART_NONE;
        pod_life_mark(life);
        return 0;
}

static void hold(PodLife *life, uint64_t delay_usec) {
        int r = 0;

        life->all_restart = delay_usec > 0 ? ALL_RESTART_HOLDING : ALL_RESTART_NONE;
        if (delay_usec > 0)
                r = sd_event_add_time_relative(life->context->event, &life->order_timer,
                                               CLOCK_BOOTTIME, delay_usec, 0, on_held, life);
        if (r >= 0)
                return;
        (void) log_error_errno(r, "Cannot arm the restart of pod '%s'", life->description);
        life->all_restart = ALL_RESTART_NONE;
}

/* The longest wait of those that ask for it; false where none does. */
static bool wants_all(const PodLife *life, uint64_t *ret_delay_usec) {
        uint64_t delay, longest = 0;
        bool found = false;

        for (size_t i = 0; i < life->n_containers; i++)
                if (container_wants_all(life->containers[i].life, &delay)) {
                        longest = MAX(longest, delay);
                        found = true;
                }
        *ret_delay_usec = longest;
        return found;
}

static bool all_finished(const PodLife *life) {
        for (size_t i = 0; i < life->n_containers; i++)
                if (!container_is_finished(life->containers[i].life))
                        return false;
        return true;
}

static void put_back(PodContainer *c) {
        container_stop(c->life);
        container_again(c->life);
        c->has_run = false;
}

static void restart_all(PodLife *life) {
        uint64_t delay = 0;

        if (!life->is_wanted || pod_life_has_failed(life))
                life->all_restart = ALL_RESTART_NONE;
        else if (life->all_restart == ALL_RESTART_NONE && wants_all(life, &delay)) {
                life->all_restart = ALL_RESTART_ENDING;
                log_info("All containers of pod '%s' are restarted", life->description);
        }
        if (life->all_restart != ALL_RESTART_ENDING || !all_finished(life))
                return;
        (void) wants_all(life, &delay);
        for (size_t i = 0; i < life->n_containers; i++)
                put_back(&life->containers[i]);
        life->generation++;
        hold(life, delay);
}

void pod_life_adopt_order(PodLife *life) {
        for (size_t i = 0; i < life->n_containers; i++)
                life->generation = MAX(life->generation, life->containers[i].generation);
        for (size_t i = 0; i < life->n_containers; i++) {
                PodContainer *c = &life->containers[i];

                if (c->has_run && c->generation < life->generation &&
                    !container_has_process(c->life))
                        put_back(c);
        }
}

/* ---- what is due ---- */

static void act(PodContainer *c, OrderAction action) {
        switch (action) {
        case ORDER_START:
                container_start(c->life);
                break;
        case ORDER_RETIRE:
                container_retire(c->life);
                break;
        case ORDER_STOP:
                container_stop(c->life);
                break;
        case ORDER_NOTHING:
                break;
        }
}

void pod_life_follow_order(PodLife *life) {
        OrderWish wish = { 0 };

        restart_all(life);
        wish.must_end = pod_life_is_ending(life);
        wish.must_hold = life->all_restart != ALL_RESTART_NONE;
        if (!wish.must_end && pod_life_goes_on(life))
                life->ending_since = 0;
        else if (life->ending_since == 0)
                life->ending_since = now_boottime_usec();
        wish.is_late = life->all_restart == ALL_RESTART_ENDING ||
                       (life->ending_since > 0 &&
                        now_boottime_usec() - life->ending_since >= pod_life_grace_usec(life));
        look(life);
        order_plan(life->order, life->n_containers, &wish);
        for (size_t i = 0; i < life->n_containers; i++)
                act(&life->containers[i], life->order[i].action);
}

void pod_life_forget_order(PodLife *life) {
        for (size_t i = 0; i < life->n_containers; i++) {
                PodContainer *c = &life->containers[i];

                c->has_run = false;
                if (container_role(&life->pod->spec, c->spec) == ROLE_INIT)
                        container_again(c->life);
        }
}
