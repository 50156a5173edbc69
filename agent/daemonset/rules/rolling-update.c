/* SPDX-License-Identifier: Apache-2.0 */

/* The plan of a rolling update; see the header. A node has one pod of a set, or two during an
 * update with maxSurge. So it matters only whether maxSurge is greater than 0; otherwise
 * maxUnavailable is greater than 0, and the only pod may be replaced. The plan is stateless: after
 * a restart of the agent, the same pods result in the same plan. */

#include "agent/daemonset/rules/rolling-update.h"

#include "common/clock.h"

#include <string.h>

static bool is_pod_leaving(const DaemonSetPodState *pod) {
        return pod->is_terminating || pod->is_terminal;
}

/* The oldest pod that continues, of the current or an old revision; or n. */
static size_t find_oldest_pod(const DaemonSetPodStates *pods, bool is_current) {
        size_t best = pods->n;

        for (size_t i = 0; i < pods->n; i++) {
                const DaemonSetPodState *pod = &pods->items[i];

                if (pod->is_current == is_current && !is_pod_leaving(pod) &&
                    (best == pods->n || pod->start_time < pods->items[best].start_time))
                        best = i;
        }
        return best;
}

static bool has_old_revision_pod(const DaemonSetPodStates *pods) {
        for (size_t i = 0; i < pods->n; i++)
                if (!pods->items[i].is_current)
                        return true;
        return false;
}

/* Its successor has the same name, so it must be gone first. */
static bool has_terminal_current_pod(const DaemonSetPodStates *pods) {
        for (size_t i = 0; i < pods->n; i++)
                if (pods->items[i].is_current && pods->items[i].is_terminal &&
                    !pods->items[i].is_terminating)
                        return true;
        return false;
}

static bool has_on_delete_strategy(const DaemonSet *set) {
        return set->spec.update_strategy.type == DAEMONSET_ON_DELETE;
}

/* A terminated pod of an old revision is only removed, not replaced, and the update continues. */
static bool is_replaced_in_place(const DaemonSet *set, const DaemonSetPodState *pod) {
        return pod->is_terminal && !pod->is_terminating &&
               (pod->is_current || has_on_delete_strategy(set));
}

bool daemonset_has_terminal_pod(const DaemonSet *set, const DaemonSetPodStates *pods) {
        for (size_t i = 0; i < pods->n; i++)
                if (is_replaced_in_place(set, &pods->items[i]))
                        return true;
        return false;
}

static bool is_revision_available(const DaemonSet *set, const DaemonSetPodState *pod, uint64_t now,
                                  DaemonSetPlan *plan) {
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

static bool has_max_surge(const DaemonSet *set) {
        const DaemonSetUpdateStrategy *strategy = &set->spec.update_strategy;

        return strategy->type == DAEMONSET_ROLLING_UPDATE &&
               int_or_percent_of_one(&strategy->rolling_update->max_surge, true) > 0;
}

/* The new pod starts first. An old pod that is not ready serves no clients and is not kept. */
static void plan_surge_update(const DaemonSetPodStates *pods, size_t current, size_t old,
                              bool keep[], DaemonSetPlan *plan) {
        plan->creates_pod = current == pods->n && !has_terminal_current_pod(pods);
        if (current < pods->n)
                keep[current] = true;
        if (old < pods->n && !plan->is_available &&
            (current == pods->n || pods->items[old].is_ready))
                keep[old] = true;
}

/* maxUnavailable: the old pod is stopped first, but not before the new one could start. The new one
 * starts afterwards, because both may use the same port. */
static void plan_max_unavailable_update(const DaemonSetPodStates *pods, size_t current, size_t old,
                                        bool is_preflighted, bool keep[], DaemonSetPlan *plan) {
        plan->creates_pod = current == pods->n && !has_old_revision_pod(pods) &&
                            !has_terminal_current_pod(pods);
        if (current < pods->n)
                keep[current] = true;
        else if (old < pods->n && !is_preflighted)
                keep[old] = plan->awaits_preflight = true;
}

/* The old pod stays until it is deleted. */
static void plan_on_delete_update(const DaemonSetPodStates *pods, size_t current, size_t old,
                                  bool keep[], DaemonSetPlan *plan) {
        if (current < pods->n)
                keep[current] = true;
        else if (old < pods->n)
                keep[old] = true;
        else
                plan->creates_pod = !has_old_revision_pod(pods) && !has_terminal_current_pod(pods);
}

/* No pod is created, but an update in progress is completed. */
static void plan_continued_pods(const DaemonSet *set, const DaemonSetPodStates *pods,
                                size_t current, size_t old, bool keep[], DaemonSetPlan *plan) {
        if (has_max_surge(set))
                plan_surge_update(pods, current, old, keep, plan);
        else if (current < pods->n || old < pods->n)
                keep[current < pods->n ? current : old] = true;
        plan->creates_pod = false;
}

/* Whether the state of a pod that could continue is unknown, in which case all are kept. Otherwise
 * an old pod that only appears to be unready might be stopped although it is the one that serves
 * clients. */
static bool keep_unsynced_pods(const DaemonSetPodStates *pods, bool keep[], DaemonSetPlan *plan) {
        for (size_t i = 0; i < pods->n; i++) {
                keep[i] = !pods->items[i].is_terminating;
                plan->is_syncing = plan->is_syncing ||
                                   (pods->items[i].is_syncing && !is_pod_leaving(&pods->items[i]));
        }
        return plan->is_syncing;
}

static void plan_by_update_strategy(const DaemonSet *set, const DaemonSetPodStates *pods,
                                    const DaemonSetPlanInput *input, bool keep[],
                                    DaemonSetPlan *plan) {
        size_t current = find_oldest_pod(pods, /* is_current= */ true);
        size_t old = find_oldest_pod(pods, /* is_current= */ false);

        for (size_t i = 0; i < pods->n; i++)
                keep[i] = input->is_backing_off && is_replaced_in_place(set, &pods->items[i]);
        if (current < pods->n)
                plan->is_available =
                        is_revision_available(set, &pods->items[current], input->now, plan);
        if (input->verdict == DAEMONSET_SHOULD_CONTINUE)
                plan_continued_pods(set, pods, current, old, keep, plan);
        else if (has_on_delete_strategy(set))
                plan_on_delete_update(pods, current, old, keep, plan);
        else if (has_max_surge(set))
                plan_surge_update(pods, current, old, keep, plan);
        else
                plan_max_unavailable_update(pods, current, old, input->is_preflighted, keep, plan);
}

static bool is_plan_settled(const DaemonSet *set, const DaemonSetPodStates *pods,
                            const DaemonSetPlanInput *input, const bool keep[],
                            const DaemonSetPlan *plan) {
        bool has_current = find_oldest_pod(pods, true) < pods->n;
        size_t n_kept = 0;

        for (size_t i = 0; i < pods->n; i++)
                n_kept += keep[i];
        if (plan->creates_pod || plan->awaits_preflight || plan->is_syncing || n_kept < pods->n)
                return false;
        return input->verdict != DAEMONSET_SHOULD_RUN || plan->is_available ||
               (has_on_delete_strategy(set) && !has_current);
}

void daemonset_plan_update(const DaemonSet *set, const DaemonSetPodStates *pods,
                           const DaemonSetPlanInput *input, bool ret_keep[], DaemonSetPlan *ret) {
        DaemonSetPlan plan = { 0 };

        if (input->verdict == DAEMONSET_SHOULD_STOP)
                memset(ret_keep, 0, pods->n * sizeof(*ret_keep));
        else if (!keep_unsynced_pods(pods, ret_keep, &plan))
                plan_by_update_strategy(set, pods, input, ret_keep, &plan);
        plan.is_settled = is_plan_settled(set, pods, input, ret_keep, &plan);
        *ret = plan;
}
