/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/pod-preemption.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/macros.h"

#include <inttypes.h>
#include <stdio.h>

bool pod_may_preempt(const Pod *pod, const Pod *victim) {
        if (!pod_is_of_api(victim))
                return false;
        return (pod_is_critical(&pod->spec) && !pod_is_critical(&victim->spec)) ||
               pod->spec.priority.value > victim->spec.priority.value;
}

/* Computes the amounts that are still missing without this pod. Returns whether any are. */
static bool subtract_requests(NodeUsage *missing, const NodeUsage *requests) {
        bool is_short = false;

        for (unsigned i = 0; i < N_NODE_AMOUNTS; i++) {
                missing->amounts[i] = MAX(missing->amounts[i] - requests->amounts[i], 0);
                is_short = is_short || missing->amounts[i] > 0;
        }
        return is_short;
}

/* For each missing amount, the fraction of it that would still be missing without this pod; the
 * result is the sum of the squares of these fractions. */
static double distance_to_missing(const NodeUsage *missing, const NodeUsage *requests) {
        double distance = 0;

        for (unsigned i = 0; i < N_NODE_AMOUNTS; i++) {
                double rest = (double) (missing->amounts[i] - requests->amounts[i]);

                if (missing->amounts[i] > 0 && rest > 0) {
                        rest /= (double) missing->amounts[i];
                        distance += rest * rest;
                }
        }
        return distance;
}

/* Also true if they are equal: the kubelet chooses the later one. */
static bool requests_no_more(const NodeUsage *a, const NodeUsage *b) {
        if (a->amounts[RESOURCE_MEMORY] != b->amounts[RESOURCE_MEMORY])
                return a->amounts[RESOURCE_MEMORY] < b->amounts[RESOURCE_MEMORY];
        return a->amounts[RESOURCE_CPU] <= b->amounts[RESOURCE_CPU];
}

static PreemptionCandidate *find_nearest_candidate(PreemptionCandidate *candidates, size_t n,
                                                   QosClass qos, const NodeUsage *missing) {
        PreemptionCandidate *best = NULL;
        double best_distance = 0;

        for (size_t i = 0; i < n; i++) {
                PreemptionCandidate *candidate = &candidates[i];
                double distance = distance_to_missing(missing, &candidate->requests);

                if (candidate->qos != qos || candidate->is_chosen)
                        continue;
                if (!best || distance < best_distance ||
                    (distance <= best_distance &&
                     requests_no_more(&candidate->requests, &best->requests))) {
                        best = candidate;
                        best_distance = distance;
                }
        }
        return best;
}

/* The amounts that this class must provide: without the amounts of the pods of lower classes, which
 * are stopped first, and without those of the chosen pods. As few pods as possible are chosen. */
static void choose_pods_of_class(PreemptionCandidate *candidates, size_t n, QosClass qos,
                                 const NodeUsage *missing) {
        NodeUsage rest = *missing;
        bool is_short = true;

        for (size_t i = 0; i < n && is_short; i++)
                if (candidates[i].qos > qos || candidates[i].is_chosen)
                        is_short = subtract_requests(&rest, &candidates[i].requests);
        while (is_short) {
                PreemptionCandidate *nearest = find_nearest_candidate(candidates, n, qos, &rest);

                if (!nearest)
                        return;
                nearest->is_chosen = true;
                is_short = subtract_requests(&rest, &nearest->requests);
        }
}

bool choose_pods_to_preempt(PreemptionCandidate *candidates, size_t n, const NodeUsage *missing,
                            NodeUsage *ret_unmet) {
        bool is_short = true;

        *ret_unmet = *missing;
        for (size_t i = 0; i < n; i++) {
                candidates[i].is_chosen = false;
                is_short = subtract_requests(ret_unmet, &candidates[i].requests);
        }
        if (is_short)
                return false;
        for (QosClass qos = QOS_GUARANTEED; qos < N_QOS_CLASSES; qos++)
                choose_pods_of_class(candidates, n, qos, missing);
        return true;
}

char *format_missing_resources(const NodeUsage *missing) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        (void) fputs("[", out);
        for (size_t i = 0; i < N_ELEMENTS(node_amount_order); i++) {
                unsigned amount = node_amount_order[i];

                if (missing->amounts[amount] > 0)
                        (void) fprintf(out, "(res: %s, q: %" PRId64 "), ", node_amount_name(amount),
                                       missing->amounts[amount]);
        }
        (void) fputs("]", out);
        return memstream_finish(out, &text);
}
