/* SPDX-License-Identifier: Apache-2.0 */
/* One look: ask the kernel, see which thresholds are crossed, do one thing about it, and say when
 * to look next. That is in a second while something is short; else as far away as nothing can
 * become short meanwhile, or never, where nothing runs and no condition has to end. */

#include "agent/pressure/pressure.h"

#include "agent/pressure/doorbell.h"
#include "agent/pressure/rhythm.h"
#include "common/clock.h"
#include "common/log.h"

#include <errno.h>
#include <stdlib.h>

#define SHORT_USEC    (1 * USEC_PER_SEC)  /* between two looks while something is short … */
#define PATIENT_USEC  (10 * USEC_PER_SEC) /* … or nothing can be done about it, and then … */
#define RESIGNED_USEC (60 * USEC_PER_SEC) /* … twice as long each time, up to this */
#define FRESH_USEC    (USEC_PER_SEC / 2)  /* so long a look is good enough to decide by */

enum {
        HARD_GRACE_SECONDS = 1, /* as with the kubelet */
};

struct Pressure {
        PressureConfig config;
        Doorbell *doorbell;
        sd_event_source *timer; /* the next look, which is at: */
        uint64_t next_at;       /* boot time; UINT64_MAX: there is none */
        Observations observed;  /* by the last one, which was at: */
        uint64_t looked_at;     /* boot time; 0: never */
        uint64_t interval;      /* that rhythm_next() gave; 0: none */
        PressureState state;
        NodeConditions conditions;
        EvictionSignal reclaimed; /* what is short now and was told of; N_EVICTION_SIGNALS: none */
        uint64_t patience;        /* since nobody could be evicted; 0: somebody could */
};

static void look(Pressure *p);

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Pressure *p = userdata;

        p->next_at = UINT64_MAX;
        look(p);
        return 0;
}

static void arm(Pressure *p, uint64_t delay_usec) {
        int r = 0;

        p->next_at = delay_usec;
        if (delay_usec == UINT64_MAX) {
                p->timer = sd_event_source_disable_unref(p->timer);
                return;
        }
        p->next_at += now_boottime_usec();
        if (!p->timer)
                r = sd_event_add_time_relative(p->config.event, &p->timer, CLOCK_BOOTTIME,
                                               delay_usec, delay_usec / 10, on_timer, p);
        else
                r = sd_event_source_set_time_relative(p->timer, delay_usec);
        if (r >= 0) /* that of the first would count for all that follow */
                r = sd_event_source_set_time_accuracy(p->timer, delay_usec / 10);
        if (r >= 0)
                r = sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT);
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the next look at what the node has left");
}

static void look_within(Pressure *p, uint64_t delay_usec) {
        if (p->next_at > now_boottime_usec() + delay_usec)
                arm(p, delay_usec);
}

static void on_rings(void *userdata) {
        Pressure *p = userdata;

        if (!p->config.callbacks->is_busy(p->config.userdata))
                return; /* nobody of ours can be the cause of it */
        if (now_boottime_usec() - p->looked_at >= FRESH_USEC)
                look(p);
        else
                look_within(p, SHORT_USEC);
}

int pressure_new(const PressureConfig *config, Pressure **ret) {
        Pressure *p = calloc(1, sizeof(*p));
        uint64_t now = now_realtime_usec();
        int r;

        if (!p)
                return -ENOMEM;
        p->config = *config;
        p->next_at = UINT64_MAX;
        p->reclaimed = N_EVICTION_SIGNALS;
        for (NodeCondition c = 0; c < N_NODE_CONDITIONS; c++)
                p->conditions.since[c] = now;
        r = doorbell_new(config->event, config->policy->has_memcg_notification, on_rings, p,
                         &p->doorbell);
        if (r < 0) {
                free(p);
                return r;
        }
        *ret = p;
        return 0;
}

Pressure *pressure_free(Pressure *p) {
        if (!p)
                return NULL;
        sd_event_source_disable_unref(p->timer);
        doorbell_free(p->doorbell);
        free(p);
        return NULL;
}

void pressure_remember(Pressure *p, NodeCondition condition, uint64_t seen_at) {
        uint64_t realtime = now_realtime_usec(), boottime = now_boottime_usec();
        uint64_t ago = realtime - MIN(seen_at, realtime);

        if (ago < boottime)
                p->state.condition_seen_at[condition] =
                        MAX(p->state.condition_seen_at[condition], boottime - ago);
}

static void set_conditions(Pressure *p, unsigned set) {
        unsigned changed = p->conditions.set ^ set;

        if (changed == 0)
                return;
        for (NodeCondition c = 0; c < N_NODE_CONDITIONS; c++) {
                if (!(changed & NODE_CONDITION_BIT(c)))
                        continue;
                p->conditions.since[c] = now_realtime_usec();
                if (set & NODE_CONDITION_BIT(c))
                        log_warning("The node has %s", node_conditions[c].name);
                else
                        log_info("The node has no %s any more", node_conditions[c].name);
        }
        p->conditions.set = set;
        p->config.callbacks->on_conditions(p->config.userdata);
}

static Shortage shortage_of(const Pressure *p, const EvictionThreshold *threshold) {
        const Observation *observed = &p->observed.of[threshold->signal];
        int64_t quantity = eviction_amount_of(&threshold->value, observed->capacity);

        return (Shortage){
                .signal = threshold->signal,
                .grace_seconds = threshold->grace_usec == 0
                                         ? HARD_GRACE_SECONDS
                                         : p->config.policy->max_pod_grace_seconds,
                .quantity = quantity,
                .available = observed->available,
        };
}

static bool is_of_images(const Pressure *p, EvictionSignal signal) {
        return signal == EVICTION_IMAGE_FS || signal == EVICTION_IMAGE_FS_INODES ||
               (eviction_signals[signal].condition == NODE_DISK_PRESSURE &&
                !observe_has_image_fs(&p->config.places));
}

/* Does one thing about it; gives when to look what has come of it. */
static uint64_t relieve(Pressure *p, const Shortage *shortage) {
        const PressureCallbacks *callbacks = p->config.callbacks;
        void *userdata = p->config.userdata;

        if (p->reclaimed != shortage->signal) {
                p->reclaimed = shortage->signal;
                p->patience = 0;
                callbacks->on_shortage(shortage, userdata);
        }
        if (is_of_images(p, shortage->signal) && callbacks->remove_images(userdata))
                return SHORT_USEC;
        if (callbacks->evict(shortage, userdata))
                return SHORT_USEC;
        if (p->patience == 0)
                log_warning("The node is short of %s, and no pod can be evicted that would help",
                            eviction_signals[shortage->signal].name);
        p->patience = MIN(MAX(2 * p->patience, PATIENT_USEC), RESIGNED_USEC);
        return p->patience;
}

static int64_t distance_of_memory(const Pressure *p) {
        const EvictionPolicy *policy = p->config.policy;
        const Observation *memory = &p->observed.of[EVICTION_MEMORY];
        int64_t least = 0;

        for (size_t i = 0; i < policy->n_thresholds; i++) {
                const EvictionThreshold *threshold = &policy->thresholds[i];
                int64_t distance =
                        memory->available - eviction_amount_of(&threshold->value, memory->capacity);

                if (threshold->signal == EVICTION_MEMORY && distance > 0 &&
                    (least == 0 || distance < least))
                        least = distance;
        }
        return least;
}

/* When to look again, where nothing is short. */
static uint64_t next_rhythm(Pressure *p, const Observations *before) {
        if (!p->config.callbacks->is_busy(p->config.userdata)) {
                p->interval = 0;
                return UINT64_MAX;
        }
        doorbell_set_distance(p->doorbell, distance_of_memory(p));
        p->interval = rhythm_next(p->config.policy, before, &p->observed,
                                  doorbell_is_there(p->doorbell), p->interval);
        return p->interval;
}

/* Does what is due; gives when to look again. */
static uint64_t act(Pressure *p, const Observations *before, uint64_t now) {
        const PressureCallbacks *callbacks = p->config.callbacks;
        const EvictionThreshold *due = pressure_state_due(&p->state, p->config.policy);
        uint64_t next = pressure_state_next(&p->state, p->config.policy);
        bool is_short = pressure_state_is_short(&p->state, p->config.policy);
        uint64_t later;
        Shortage shortage;

        next = next == UINT64_MAX ? next : next - MIN(next, now) + 1;
        if (!is_short) {
                p->reclaimed = N_EVICTION_SIGNALS;
                later = next_rhythm(p, before);
                return MIN(next, later);
        }
        p->interval = 0;
        if (callbacks->is_relieving(p->config.userdata))
                return MIN(next, SHORT_USEC);
        if (!callbacks->is_busy(p->config.userdata))
                return next;
        if (!due)
                return MIN(next, SHORT_USEC);
        shortage = shortage_of(p, due);
        later = relieve(p, &shortage);
        return MIN(next, later);
}

static void look(Pressure *p) {
        Observations before = p->observed;
        uint64_t now = now_boottime_usec();

        p->looked_at = now;
        if (p->config.policy->n_thresholds == 0)
                return;
        observe_node(&p->config.places, &p->observed);
        pressure_state_update(&p->state, p->config.policy, &p->observed, now);
        set_conditions(p, p->state.conditions);
        arm(p, act(p, &before, now));
}

void pressure_look(Pressure *p) {
        if (p->looked_at == 0 || now_boottime_usec() - p->looked_at >= FRESH_USEC)
                look(p);
}

void pressure_wake(Pressure *p) {
        if (p->interval == 0 && p->config.policy->n_thresholds > 0)
                look_within(p, SHORT_USEC);
}

const NodeConditions *pressure_conditions(const Pressure *p) {
        return &p->conditions;
}
