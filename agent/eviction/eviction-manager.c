/* SPDX-License-Identifier: Apache-2.0 */
/* One synchronization: observe the signals, compare them with the thresholds, reclaim one thing,
 * and set the time of the next one. While a resource is short, the interval is a second; otherwise
 * it is the time in which no resource can run out (monitoring-interval.h), or infinite if nothing
 * is running and no condition has to end. */

#include "agent/eviction/eviction-manager.h"

#include "agent/eviction/memory-pressure-watch.h"
#include "agent/eviction/monitoring-interval.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/log.h"
#include "common/message-ids.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* The interval while a resource is short. If nothing can be reclaimed, it doubles from RETRY_MIN to
 * RETRY_MAX. */
#define RECLAIM_INTERVAL_USEC  (1 * USEC_PER_SEC)
#define RECLAIM_RETRY_MIN_USEC (10 * USEC_PER_SEC)
#define RECLAIM_RETRY_MAX_USEC (60 * USEC_PER_SEC)

/* The interval while the file system is read-only; pods start again soon after it is writable. */
#define READ_ONLY_INTERVAL_USEC (5 * USEC_PER_SEC)

#define OBSERVATION_VALID_USEC (USEC_PER_SEC / 2) /* how long observations are used */

enum {
        ACCURACY_PARTS = 10,    /* fractions of a wait */
        HARD_GRACE_SECONDS = 1, /* like in the kubelet */
};

struct EvictionManager {
        EvictionManagerConfig config;
        MemoryPressureWatch *memory_watch;
        sd_event_source *timer;      /* for the next synchronization, at 'next_at' */
        uint64_t next_at;            /* boot time; UINT64_MAX: none is due */
        SignalObservations observed; /* observed at 'observed_at' */
        uint64_t observed_at;        /* boot time; 0: never */
        uint64_t interval;           /* from next_monitoring_interval(); 0: none */
        ThresholdState state;
        NodeConditions conditions;
        EvictionSignal reclaimed_signal; /* the reported shortage; N_EVICTION_SIGNALS: none */
        uint64_t retry_usec; /* back-off while no pod can be evicted; 0: there is none */
};

static void synchronize_eviction_now(EvictionManager *manager);

static int on_eviction_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        EvictionManager *manager = userdata;

        manager->next_at = UINT64_MAX;
        synchronize_eviction_now(manager);
        return 0;
}

static int set_eviction_timer(EvictionManager *manager, uint64_t delay_usec) {
        int r = manager->timer
                        ? 0
                        : event_add_disabled_timer(manager->config.event, &manager->timer,
                                                   CLOCK_BOOTTIME, 0, on_eviction_timer, manager);

        return r < 0 ? r : event_timer_arm_inexact(manager->timer, delay_usec, ACCURACY_PARTS);
}

static void arm_eviction_timer(EvictionManager *manager, uint64_t delay_usec) {
        int r;

        manager->next_at = delay_usec;
        if (delay_usec == UINT64_MAX) {
                manager->timer = sd_event_source_disable_unref(manager->timer);
                return;
        }
        manager->next_at += now_boottime_usec();
        r = set_eviction_timer(manager, delay_usec);
        if (r < 0)
                log_error("Cannot arm the eviction timer: %s; node pressure is not detected",
                          strerror(-r));
}

static void synchronize_eviction_within(EvictionManager *manager, uint64_t delay_usec) {
        if (manager->next_at > now_boottime_usec() + delay_usec)
                arm_eviction_timer(manager, delay_usec);
}

static void on_memory_pressure(void *userdata) {
        EvictionManager *manager = userdata;

        if (!manager->config.callbacks->has_active_pods(manager->config.userdata))
                return; /* no pod can be the cause */
        if (now_boottime_usec() - manager->observed_at >= OBSERVATION_VALID_USEC)
                synchronize_eviction_now(manager);
        else
                synchronize_eviction_within(manager, RECLAIM_INTERVAL_USEC);
}

int eviction_manager_new(const EvictionManagerConfig *config, EvictionManager **ret) {
        EvictionManager *manager = calloc(1, sizeof(*manager));
        uint64_t now = now_realtime_usec();
        int r;

        if (!manager)
                return -ENOMEM;
        manager->config = *config;
        manager->next_at = UINT64_MAX;
        manager->reclaimed_signal = N_EVICTION_SIGNALS;
        for (NodeCondition c = 0; c < N_NODE_CONDITIONS; c++)
                manager->conditions.since[c] = now;
        r = memory_pressure_watch_new(config->event, config->policy->has_memcg_notification,
                                      on_memory_pressure, manager, &manager->memory_watch);
        if (r < 0) {
                free(manager);
                return r;
        }
        *ret = manager;
        return 0;
}

EvictionManager *eviction_manager_free(EvictionManager *manager) {
        if (!manager)
                return NULL;
        sd_event_source_disable_unref(manager->timer);
        memory_pressure_watch_free(manager->memory_watch);
        free(manager);
        return NULL;
}

void eviction_manager_restore_condition(EvictionManager *manager, NodeCondition condition,
                                        uint64_t seen_at) {
        uint64_t realtime = now_realtime_usec(), boottime = now_boottime_usec();
        uint64_t ago = realtime - MIN(seen_at, realtime);

        if (ago < boottime)
                manager->state.condition_seen_at[condition] =
                        MAX(manager->state.condition_seen_at[condition], boottime - ago);
}

static void report_resource_shortage(const EvictionManager *manager,
                                     const ResourceShortage *shortage) {
        const EvictionSignalInfo *info = &eviction_signals[shortage->signal];
        cleanup_free char *message = format_reclaim_message(shortage);

        log_set_message_id(MESSAGE_NODE_PRESSURE);
        log_warning("Eviction threshold of %s is met; reclaiming %s", info->name, info->resource);
        if (message)
                manager->config.callbacks->on_event(&(PodEvent){ .kind = POD_EVENT_WARNING,
                                                                 .reason = "EvictionThresholdMet",
                                                                 .message = message },
                                                    manager->config.userdata);
}

static void report_readonly_filesystem(const EvictionManager *manager, bool is_read_only) {
        const NodeConditionInfo *info = &node_conditions[NODE_READONLY_FILESYSTEM];
        const PodEvent event = {
                .kind = is_read_only ? POD_EVENT_WARNING : POD_EVENT_NORMAL,
                .reason = is_read_only ? info->reason_true : info->reason_false,
                .message = is_read_only ? info->message_true : info->message_false,
        };

        manager->config.callbacks->on_event(&event, manager->config.userdata);
}

static void set_pressure_conditions(EvictionManager *manager, unsigned set) {
        unsigned changed = manager->conditions.set ^ set;

        if (changed == 0)
                return;
        for (NodeCondition c = 0; c < N_NODE_CONDITIONS; c++) {
                if (!(changed & NODE_CONDITION_BIT(c)))
                        continue;
                manager->conditions.since[c] = now_realtime_usec();
                if (set & NODE_CONDITION_BIT(c))
                        log_warning("The node has %s", node_conditions[c].name);
                else
                        log_info("The node no longer has %s", node_conditions[c].name);
        }
        manager->conditions.set = set;
        if (changed & NODE_CONDITION_BIT(NODE_READONLY_FILESYSTEM))
                report_readonly_filesystem(manager, manager->observed.is_read_only);
        manager->config.callbacks->on_conditions(manager->config.userdata);
}

/* A hard threshold has its own grace period; for a soft one, evictionMaxPodGracePeriod applies. */
static ResourceShortage shortage_of_threshold(const EvictionManager *manager,
                                              const EvictionThreshold *threshold) {
        const SignalObservation *observed = &manager->observed.of[threshold->signal];
        int64_t quantity = eviction_amount_of(&threshold->value, observed->capacity);

        return (ResourceShortage){
                .signal = threshold->signal,
                .grace_seconds = threshold->grace_usec == 0
                                         ? HARD_GRACE_SECONDS
                                         : manager->config.policy->max_pod_grace_seconds,
                .quantity = quantity,
                .available = observed->available,
        };
}

static bool frees_by_image_gc(const EvictionManager *manager, EvictionSignal signal) {
        return signal == EVICTION_IMAGE_FS || signal == EVICTION_IMAGE_FS_INODES ||
               (eviction_signals[signal].condition == NODE_DISK_PRESSURE &&
                !has_dedicated_image_fs(&manager->config.paths));
}

/* Removes images or evicts one pod; returns the time at which to observe the result. */
static uint64_t reclaim_resource(EvictionManager *manager, const ResourceShortage *shortage) {
        const EvictionManagerCallbacks *callbacks = manager->config.callbacks;
        void *userdata = manager->config.userdata;

        if (manager->reclaimed_signal != shortage->signal) {
                manager->reclaimed_signal = shortage->signal;
                manager->retry_usec = 0;
                report_resource_shortage(manager, shortage);
        }
        if (frees_by_image_gc(manager, shortage->signal) && callbacks->remove_images(userdata))
                return RECLAIM_INTERVAL_USEC;
        if (callbacks->evict(shortage, userdata))
                return RECLAIM_INTERVAL_USEC;
        if (manager->retry_usec == 0)
                log_warning("Eviction threshold of %s is met, but no pod qualifies for eviction; "
                            "retrying",
                            eviction_signals[shortage->signal].name);
        manager->retry_usec =
                MIN(MAX(2 * manager->retry_usec, RECLAIM_RETRY_MIN_USEC), RECLAIM_RETRY_MAX_USEC);
        return manager->retry_usec;
}

static int64_t memory_above_threshold(const EvictionManager *manager) {
        const EvictionPolicy *policy = manager->config.policy;
        const SignalObservation *memory = &manager->observed.of[EVICTION_MEMORY];
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

/* The time of the next observation if nothing is short. */
static uint64_t next_idle_interval(EvictionManager *manager, const SignalObservations *before) {
        if (!manager->config.callbacks->has_active_pods(manager->config.userdata)) {
                manager->interval = 0;
                return UINT64_MAX;
        }
        memory_pressure_watch_set_growth(manager->memory_watch, memory_above_threshold(manager));
        manager->interval = next_monitoring_interval(
                manager->config.policy, before, &manager->observed,
                memory_pressure_watch_is_active(manager->memory_watch), manager->interval);
        if (manager->observed.is_read_only)
                manager->interval = MIN(manager->interval, READ_ONLY_INTERVAL_USEC);
        return manager->interval;
}

/* Does everything that is due; returns the time of the next observation. */
static uint64_t reclaim_due_threshold(EvictionManager *manager, const SignalObservations *before,
                                      uint64_t now) {
        const EvictionManagerCallbacks *callbacks = manager->config.callbacks;
        const EvictionThreshold *due = threshold_state_due(&manager->state, manager->config.policy);
        uint64_t next = threshold_state_next_change(&manager->state, manager->config.policy);
        bool is_short = threshold_state_is_short(&manager->state, manager->config.policy);
        uint64_t later;
        ResourceShortage shortage;

        next = next == UINT64_MAX ? next : next - MIN(next, now) + 1;
        if (!is_short) {
                manager->reclaimed_signal = N_EVICTION_SIGNALS;
                later = next_idle_interval(manager, before);
                return MIN(next, later);
        }
        manager->interval = 0;
        /* Only a shortage that is relieved by removing images waits for their removal. */
        if (callbacks->is_reclaiming(due && frees_by_image_gc(manager, due->signal),
                                     manager->config.userdata))
                return MIN(next, RECLAIM_INTERVAL_USEC);
        if (!callbacks->has_active_pods(manager->config.userdata))
                return next;
        if (!due)
                return MIN(next, RECLAIM_INTERVAL_USEC);
        shortage = shortage_of_threshold(manager, due);
        later = reclaim_resource(manager, &shortage);
        return MIN(next, later);
}

static void synchronize_eviction_now(EvictionManager *manager) {
        SignalObservations before = manager->observed;
        uint64_t now = now_boottime_usec();

        manager->observed_at = now;
        observe_eviction_signals(&manager->config.paths, &manager->observed);
        threshold_state_update(&manager->state, manager->config.policy, &manager->observed, now);
        set_pressure_conditions(manager,
                                manager->state.conditions |
                                        (manager->observed.is_read_only
                                                 ? NODE_CONDITION_BIT(NODE_READONLY_FILESYSTEM)
                                                 : 0));
        if (manager->config.policy->n_thresholds == 0)
                return;
        arm_eviction_timer(manager, reclaim_due_threshold(manager, &before, now));
}

void eviction_manager_synchronize(EvictionManager *manager) {
        if (manager->observed_at == 0 ||
            now_boottime_usec() - manager->observed_at >= OBSERVATION_VALID_USEC)
                synchronize_eviction_now(manager);
}

void eviction_manager_wake(EvictionManager *manager) {
        if (manager->interval == 0 && manager->config.policy->n_thresholds > 0)
                synchronize_eviction_within(manager, RECLAIM_INTERVAL_USEC);
}

const NodeConditions *eviction_manager_conditions(const EvictionManager *manager) {
        return &manager->conditions;
}

static void dump_threshold(const EvictionManager *manager, size_t i, FILE *out) {
        const EvictionThreshold *threshold = &manager->config.policy->thresholds[i];
        const SignalObservation *observed = &manager->observed.of[threshold->signal];
        char grace[DUMP_DURATION_SIZE], age[DUMP_DURATION_SIZE];

        dump_line(out, 2, "threshold: %s below %" PRId64 ", grace period %s, %s",
                  eviction_signals[threshold->signal].name,
                  eviction_amount_of(&threshold->value, observed->capacity),
                  dump_format_duration(grace, threshold->grace_usec),
                  manager->state.thresholds[i].is_due   ? "due"
                  : manager->state.thresholds[i].is_met ? "met"
                                                        : "not met");
        if (manager->state.thresholds[i].is_met)
                dump_line(
                        out, 3, "met for: %s",
                        dump_format_duration(age, now_boottime_usec() -
                                                          manager->state.thresholds[i].met_since));
}

static void dump_signal(const EvictionManager *manager, EvictionSignal signal, FILE *out) {
        const SignalObservation *observed = &manager->observed.of[signal];

        if (!observed->is_known)
                return;
        dump_line(out, 1, "signal: %s, available %" PRId64 " of %" PRId64,
                  eviction_signals[signal].name, observed->available, observed->capacity);
        for (size_t i = 0; i < manager->config.policy->n_thresholds; i++)
                if (manager->config.policy->thresholds[i].signal == signal)
                        dump_threshold(manager, i, out);
}

void eviction_manager_dump(const EvictionManager *manager, FILE *out) {
        char text[DUMP_DURATION_SIZE], since[RFC3339_SIZE];

        dump_section(out, "Eviction manager");
        if (manager->observed_at > 0)
                dump_line(out, 1, "last observation: %s ago",
                          dump_format_duration(text, now_boottime_usec() - manager->observed_at));
        dump_timer(out, 1, "next observation", manager->timer);
        for (NodeCondition c = 0; c < N_NODE_CONDITIONS; c++)
                dump_line(out, 1, "condition: %s %s since %s", node_conditions[c].name,
                          manager->conditions.set & NODE_CONDITION_BIT(c) ? "True" : "False",
                          format_rfc3339(since, manager->conditions.since[c]));
        for (EvictionSignal signal = 0; signal < N_EVICTION_SIGNALS; signal++)
                dump_signal(manager, signal, out);
        if (manager->reclaimed_signal != N_EVICTION_SIGNALS)
                dump_line(out, 1, "reclaims: %s", eviction_signals[manager->reclaimed_signal].name);
        if (manager->retry_usec > 0)
                dump_line(out, 1, "no pod can be evicted, back-off %s",
                          dump_format_duration(text, manager->retry_usec));
}
