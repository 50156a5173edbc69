/* SPDX-License-Identifier: Apache-2.0 */

/* There is one pod of a set on a node, but for an update with maxSurge, during which there are two.
 * Nothing here is remembered: after a restart of the agent the same pods give the same plan. */

#include "agent/daemonset/plan.h"

#include "common/clock.h"

/* The oldest that is not ending, of one kind; or n. */
static size_t find_oldest(const DaemonPods *pods, bool is_current) {
        size_t best = pods->n;

        for (size_t i = 0; i < pods->n; i++) {
                const DaemonPod *pod = &pods->items[i];

                if (pod->is_current == is_current && !pod->is_ending &&
                    (best == pods->n || pod->start_time < pods->items[best].start_time))
                        best = i;
        }
        return best;
}

static bool has_old(const DaemonPods *pods) {
        for (size_t i = 0; i < pods->n; i++)
                if (!pods->items[i].is_current)
                        return true;
        return false;
}

static bool is_available(const DaemonSet *set, const DaemonPod *pod, uint64_t now,
                         DaemonPlan *plan) {
        uint64_t until =
                pod->ready_since + (uint64_t) set->spec.min_ready_seconds.value * USEC_PER_SEC;

        if (!pod->is_ready)
                return false;
        plan->ready_since = pod->ready_since;
        if (now >= until)
                return true;
        plan->again_at = until;
        return false;
}

static bool surges(const DaemonSet *set) {
        const DaemonSetUpdateStrategy *strategy = &set->spec.update_strategy;

        return strategy->type == DAEMONSET_ROLLING_UPDATE &&
               int_or_percent_of_one(&strategy->rolling_update->max_surge, true) > 0;
}

/* The new one first. An old one that serves nobody need not be waited for. */
static void plan_surge(const DaemonPods *pods, size_t current, size_t old, bool keep[],
                       DaemonPlan *plan) {
        plan->wants_new = current == pods->n;
        if (current < pods->n)
                keep[current] = true;
        if (old < pods->n && !plan->is_available &&
            (current == pods->n || pods->items[old].is_ready))
                keep[old] = true;
}

/* The old one ends first, but not before the new one could begin; and only then it begins: both may
 * want the same port. */
static void plan_replacement(const DaemonPods *pods, size_t current, size_t old, bool is_staged,
                             bool keep[], DaemonPlan *plan) {
        plan->wants_new = current == pods->n && !has_old(pods);
        if (current < pods->n)
                keep[current] = true;
        else if (old < pods->n && !is_staged)
                keep[old] = plan->stages = true;
}

/* The old one stays until somebody ends it. */
static void plan_on_delete(const DaemonPods *pods, size_t current, size_t old, bool keep[],
                           DaemonPlan *plan) {
        if (current < pods->n)
                keep[current] = true;
        else if (old < pods->n)
                keep[old] = true;
        else
                plan->wants_new = !has_old(pods);
}

void daemonset_plan(const DaemonSet *set, DaemonVerdict verdict, const DaemonPods *pods,
                    bool is_staged, uint64_t now_realtime, bool ret_keep[], DaemonPlan *ret) {
        size_t current = find_oldest(pods, /* is_current= */ true);
        size_t old = find_oldest(pods, /* is_current= */ false);
        bool is_on_delete = set->spec.update_strategy.type == DAEMONSET_ON_DELETE;
        size_t n_kept = 0;
        DaemonPlan plan = { 0 };

        for (size_t i = 0; i < pods->n; i++)
                ret_keep[i] = false;
        if (current < pods->n)
                plan.is_available = is_available(set, &pods->items[current], now_realtime, &plan);
        if (verdict == DAEMON_KEEP && (current < pods->n || old < pods->n))
                ret_keep[current < pods->n ? current : old] = true;
        if (verdict == DAEMON_RUN) {
                if (is_on_delete)
                        plan_on_delete(pods, current, old, ret_keep, &plan);
                else if (surges(set))
                        plan_surge(pods, current, old, ret_keep, &plan);
                else
                        plan_replacement(pods, current, old, is_staged, ret_keep, &plan);
        }
        for (size_t i = 0; i < pods->n; i++)
                n_kept += ret_keep[i];
        plan.is_settled = !plan.wants_new && !plan.stages && n_kept == pods->n &&
                          (verdict != DAEMON_RUN || plan.is_available ||
                           (is_on_delete && current == pods->n));
        *ret = plan;
}
