/* SPDX-License-Identifier: Apache-2.0 */

/* There is one pod of a set on a node, but for an update with maxSurge, during which there are two.
 * Nothing here is remembered: after a restart of the agent the same pods give the same plan. */

#include "agent/daemonset/plan.h"

#include "common/clock.h"

#include <string.h>

static bool is_going(const DaemonPod *pod) {
        return pod->is_ending || pod->has_ended;
}

/* The oldest that goes on, of one kind; or n. */
static size_t find_oldest(const DaemonPods *pods, bool is_current) {
        size_t best = pods->n;

        for (size_t i = 0; i < pods->n; i++) {
                const DaemonPod *pod = &pods->items[i];

                if (pod->is_current == is_current && !is_going(pod) &&
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

/* The next one has its name, so it has to be gone before. */
static bool has_ended_current(const DaemonPods *pods) {
        for (size_t i = 0; i < pods->n; i++)
                if (pods->items[i].is_current && pods->items[i].has_ended &&
                    !pods->items[i].is_ending)
                        return true;
        return false;
}

static bool is_on_delete(const DaemonSet *set) {
        return set->spec.update_strategy.type == DAEMONSET_ON_DELETE;
}

/* An old one that has ended is in the way of an update; it is not made anew, it just goes. */
static bool is_remade(const DaemonSet *set, const DaemonPod *pod) {
        return pod->has_ended && !pod->is_ending && (pod->is_current || is_on_delete(set));
}

bool daemonset_has_ended_pod(const DaemonSet *set, const DaemonPods *pods) {
        for (size_t i = 0; i < pods->n; i++)
                if (is_remade(set, &pods->items[i]))
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
        plan->wants_new = current == pods->n && !has_ended_current(pods);
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
        plan->wants_new = current == pods->n && !has_old(pods) && !has_ended_current(pods);
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
                plan->wants_new = !has_old(pods) && !has_ended_current(pods);
}

/* None begins, but what is under way goes on to its end. */
static void plan_kept(const DaemonSet *set, const DaemonPods *pods, size_t current, size_t old,
                      bool keep[], DaemonPlan *plan) {
        if (surges(set))
                plan_surge(pods, current, old, keep, plan);
        else if (current < pods->n || old < pods->n)
                keep[current < pods->n ? current : old] = true;
        plan->wants_new = false;
}

/* True where something is not known of one that could go on: then all do. An old one that seems
 * not to be ready would end, and with it the only one that serves. */
static bool hold(const DaemonPods *pods, bool keep[], DaemonPlan *plan) {
        for (size_t i = 0; i < pods->n; i++) {
                keep[i] = !pods->items[i].is_ending;
                plan->is_syncing = plan->is_syncing ||
                                   (pods->items[i].is_syncing && !is_going(&pods->items[i]));
        }
        return plan->is_syncing;
}

static void plan_all(const DaemonSet *set, const DaemonPods *pods, const DaemonPlanning *planning,
                     bool keep[], DaemonPlan *plan) {
        size_t current = find_oldest(pods, /* is_current= */ true);
        size_t old = find_oldest(pods, /* is_current= */ false);

        for (size_t i = 0; i < pods->n; i++)
                keep[i] = planning->backs_off && is_remade(set, &pods->items[i]);
        if (current < pods->n)
                plan->is_available = is_available(set, &pods->items[current], planning->now, plan);
        if (planning->verdict == DAEMON_KEEP)
                plan_kept(set, pods, current, old, keep, plan);
        else if (is_on_delete(set))
                plan_on_delete(pods, current, old, keep, plan);
        else if (surges(set))
                plan_surge(pods, current, old, keep, plan);
        else
                plan_replacement(pods, current, old, planning->is_staged, keep, plan);
}

static bool is_settled(const DaemonSet *set, const DaemonPods *pods, const DaemonPlanning *planning,
                       const bool keep[], const DaemonPlan *plan) {
        bool has_current = find_oldest(pods, true) < pods->n;
        size_t n_kept = 0;

        for (size_t i = 0; i < pods->n; i++)
                n_kept += keep[i];
        if (plan->wants_new || plan->stages || plan->is_syncing || n_kept < pods->n)
                return false;
        return planning->verdict != DAEMON_RUN || plan->is_available ||
               (is_on_delete(set) && !has_current);
}

void daemonset_plan(const DaemonSet *set, const DaemonPods *pods, const DaemonPlanning *planning,
                    bool ret_keep[], DaemonPlan *ret) {
        DaemonPlan plan = { 0 };

        if (planning->verdict == DAEMON_STOP)
                memset(ret_keep, 0, pods->n * sizeof(*ret_keep));
        else if (!hold(pods, ret_keep, &plan))
                plan_all(set, pods, planning, ret_keep, &plan);
        plan.is_settled = is_settled(set, pods, planning, ret_keep, &plan);
        *ret = plan;
}
