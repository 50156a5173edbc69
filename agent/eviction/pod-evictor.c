/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/pod-evictor.h"

#include "agent/eviction/pod-usage.h"
#include "common/child.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strv.h"

#include <stdlib.h>

#define EVICTION_TIMEOUT_USEC                                             \
        (30 * USEC_PER_SEC) /* beyond the grace period, as in the kubelet \
                             */
#define MEASURE_TIMEOUT_USEC (120 * USEC_PER_SEC)
#define NUMBER_LINE_MAX      32

/* Pods whose files cannot all be counted in their share of this time are ranked by the counted
 * part. */
#define MEASURE_WALK_OPTION "--seconds=60"

/* How long a measurement is valid: the eviction manager calls again within seconds. */
#define MEASURED_VALID_USEC (15 * USEC_PER_SEC)

typedef struct EvictionCandidates {
        EvictionCandidate *items;
        size_t n;
} EvictionCandidates;

struct PodEvictor {
        PodEvictorConfig config;
        Child *measure_child;           /* measures the disk usage by … */
        EvictionCandidates measured;    /* … these … */
        EvictionSignal measured_signal; /* … for this; the result … */
        char *output;                   /* … which has not been used yet, and is valid … */
        uint64_t measured_at;           /* … since this boot time */
        char *evicting_uid;      /* the pod that was last evicted, and is still terminating …
                                  */
        uint64_t evicting_until; /* … until this awake time */
        uint64_t counts[N_EVICTION_SIGNALS];
};

static void eviction_candidates_done(EvictionCandidates *candidates) {
        for (size_t i = 0; i < candidates->n; i++)
                eviction_candidate_done(&candidates->items[i]);
        free(candidates->items);
        *candidates = (EvictionCandidates){ 0 };
}

static void forget_measurement(PodEvictor *evictor) {
        eviction_candidates_done(&evictor->measured);
        free(evictor->output);
        evictor->output = NULL;
}

int pod_evictor_new(const PodEvictorConfig *config, PodEvictor **ret) {
        PodEvictor *evictor = calloc(1, sizeof(*evictor));

        if (!evictor)
                return -ENOMEM;
        evictor->config = *config;
        *ret = evictor;
        return 0;
}

PodEvictor *pod_evictor_free(PodEvictor *evictor) {
        if (!evictor)
                return NULL;
        child_free(evictor->measure_child);
        forget_measurement(evictor);
        free(evictor->evicting_uid);
        free(evictor);
        return NULL;
}

static int list_eviction_candidates(const PodEvictor *evictor, EvictionCandidates *ret) {
        return evictor->config.callbacks->list_candidates(&ret->items, &ret->n,
                                                          evictor->config.userdata);
}

/* ---- one pod is evicted ---- */

static char *print_candidate_message(const EvictionCandidate *candidate,
                                     const ResourceShortage *shortage, const uint64_t *written) {
        cleanup_free ContainerUsage *usages = calloc(candidate->n_containers + 1, sizeof(*usages));

        if (!usages)
                return NULL;
        measure_container_usages(candidate, shortage->signal, written, usages);
        return format_eviction_message(shortage, usages, candidate->n_containers);
}

static bool evict_candidate(PodEvictor *evictor, const EvictionCandidate *candidate,
                            const ResourceShortage *shortage, const uint64_t *written) {
        const PodEvictorConfig *config = &evictor->config;
        cleanup_free char *message = print_candidate_message(candidate, shortage, written);
        cleanup_free char *uid = strdup(candidate->uid);
        uint64_t grace_usec;

        if (!message || !uid ||
            !config->callbacks->fail_pod(uid, eviction_signals[shortage->signal].condition, message,
                                         shortage->grace_seconds, &grace_usec, config->userdata))
                return false;
        free(evictor->evicting_uid);
        evictor->evicting_uid = TAKE_PTR(uid);
        evictor->evicting_until = now_awake_usec() + grace_usec + EVICTION_TIMEOUT_USEC;
        evictor->counts[shortage->signal]++;
        return true;
}

/* 'written' has an array for each candidate; NULL: their cgroups are read. A candidate without an
 * array is skipped. */
static bool evict_first_ranked(PodEvictor *evictor, const EvictionCandidates *candidates,
                               const uint64_t *const *written, const ResourceShortage *shortage) {
        cleanup_free PodUsage *usages = calloc(candidates->n + 1, sizeof(*usages));
        size_t n = 0;

        if (!usages)
                return false;
        for (size_t i = 0; i < candidates->n; i++)
                if (!written || written[i])
                        usages[n++] = measure_pod_usage(&candidates->items[i], shortage->signal,
                                                        written ? written[i] : NULL, i);
        rank_pods_for_eviction(shortage->signal, usages, n);
        for (size_t i = 0; i < n; i++)
                if (eviction_frees_enough(shortage->signal, &usages[i],
                                          shortage->quantity - shortage->available) &&
                    evict_candidate(evictor, &candidates->items[usages[i].index], shortage,
                                    written ? written[usages[i].index] : NULL))
                        return true;
        return false;
}

static bool evict_by_cgroup_usage(PodEvictor *evictor, const ResourceShortage *shortage) {
        cleanup_with(eviction_candidates_done) EvictionCandidates candidates = { 0 };

        return list_eviction_candidates(evictor, &candidates) >= 0 &&
               evict_first_ranked(evictor, &candidates, NULL, shortage);
}

/* ---- disk: a child measures what pods have written ---- */

static size_t count_measured_paths(const EvictionCandidates *candidates) {
        size_t n = 0;

        for (size_t i = 0; i < candidates->n; i++)
                n += strv_length(candidates->items[i].storage_paths);
        return n;
}

static bool parse_measured_numbers(const char *text, uint64_t *numbers, size_t n) {
        char *end;

        for (size_t i = 0; i < n; i++) {
                numbers[i] = strtoull(text, &end, 10);
                if (end == text || *end != '\n')
                        return false;
                text = end + 1;
        }
        return true;
}

/* The numbers of one candidate, or NULL if it was not measured, or if its paths have changed since
 * then. */
static const uint64_t *find_measured_numbers(const EvictionCandidates *measured,
                                             const uint64_t *numbers,
                                             const EvictionCandidate *candidate) {
        for (size_t i = 0; i < measured->n; i++) {
                size_t n_paths = strv_length(measured->items[i].storage_paths);

                if (streq(measured->items[i].uid, candidate->uid))
                        return strv_length(candidate->storage_paths) == n_paths ? numbers : NULL;
                numbers += n_paths;
        }
        return NULL;
}

static bool evict_by_measured_usage(PodEvictor *evictor, const ResourceShortage *shortage) {
        size_t n_paths = count_measured_paths(&evictor->measured);
        cleanup_with(eviction_candidates_done) EvictionCandidates candidates = { 0 };
        cleanup_free uint64_t *numbers = calloc(n_paths + 1, sizeof(*numbers));
        cleanup_free const uint64_t **written = NULL;

        if (!numbers || list_eviction_candidates(evictor, &candidates) < 0)
                return true; /* it is tried again */
        written = calloc(candidates.n + 1, sizeof(*written));
        if (!written || !parse_measured_numbers(evictor->output, numbers, n_paths))
                return true;
        for (size_t i = 0; i < candidates.n; i++)
                written[i] =
                        find_measured_numbers(&evictor->measured, numbers, &candidates.items[i]);
        return evict_first_ranked(evictor, &candidates, written, shortage);
}

/* No pod is evicted before the signals are observed again: measuring takes up to two minutes, in
 * which space may have become free. The next call uses the shortage at that time. */
static void on_pods_measured(const ChildResult *result, void *userdata) {
        PodEvictor *evictor = userdata;

        evictor->measure_child = NULL;
        evictor->measured_at = now_boottime_usec();
        if (child_succeeded(result))
                evictor->output = strdup(result->output);
        if (!evictor->output)
                forget_measurement(evictor);
}

static int measure_candidates(PodEvictor *evictor, const ResourceShortage *shortage) {
        EvictionCandidates *measured = &evictor->measured;
        cleanup_strv char **argv = NULL;
        int r = list_eviction_candidates(evictor, measured);

        if (r < 0)
                return r;
        if (measured->n == 0)
                return -ENOENT;
        r = strv_append(&argv, evictor->config.shim_path);
        if (r < 0)
                return r;
        r = strv_append(&argv, "usage");
        if (r < 0)
                return r;
        r = strv_append(&argv, MEASURE_WALK_OPTION);
        if (r < 0)
                return r;
        if (eviction_signals[shortage->signal].is_counted)
                r = strv_append(&argv, "--inodes");
        if (r < 0)
                return r;
        for (size_t i = 0; i < measured->n; i++) {
                r = strv_extend(&argv, measured->items[i].storage_paths);
                if (r < 0)
                        return r;
        }
        evictor->measured_signal = shortage->signal;
        return child_spawn(
                evictor->config.event,
                &(ChildSpec){ .argv = argv,
                              .output_max = count_measured_paths(measured) * NUMBER_LINE_MAX + 1,
                              .timeout_usec = MEASURE_TIMEOUT_USEC },
                on_pods_measured, evictor, &evictor->measure_child, NULL);
}

static bool has_measured_for(const PodEvictor *evictor, const ResourceShortage *shortage) {
        return evictor->output && evictor->measured_signal == shortage->signal &&
               now_boottime_usec() - evictor->measured_at < MEASURED_VALID_USEC;
}

static bool evict_by_disk_usage(PodEvictor *evictor, const ResourceShortage *shortage) {
        bool is_measured = has_measured_for(evictor, shortage), is_found = false;

        if (is_measured)
                is_found = evict_by_measured_usage(evictor, shortage);
        forget_measurement(evictor);
        if (is_measured)
                return is_found; /* the next call measures again */
        if (measure_candidates(evictor, shortage) >= 0)
                return true;
        forget_measurement(evictor);
        return false;
}

/* ---- interface ---- */

bool pod_evictor_evict(PodEvictor *evictor, const ResourceShortage *shortage) {
        bool is_disk = eviction_signals[shortage->signal].condition == NODE_DISK_PRESSURE;

        if (pod_evictor_is_busy(evictor, is_disk))
                return true;
        return is_disk ? evict_by_disk_usage(evictor, shortage)
                       : evict_by_cgroup_usage(evictor, shortage);
}

bool pod_evictor_is_busy(const PodEvictor *evictor, bool of_disk) {
        const PodEvictorConfig *config = &evictor->config;

        if (of_disk && evictor->measure_child)
                return true;
        return evictor->evicting_uid && now_awake_usec() < evictor->evicting_until &&
               config->callbacks->is_stopping(evictor->evicting_uid, config->userdata);
}

const uint64_t *pod_evictor_counts(const PodEvictor *evictor) {
        return evictor->counts;
}
