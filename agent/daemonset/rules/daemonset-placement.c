/* SPDX-License-Identifier: Apache-2.0 */

/* Determines whether a DaemonSet runs on this node (Kubernetes: NodeShouldRunDaemonPod): node name,
 * nodeSelector, node affinity, taints and tolerations, pod affinity, in the order of Kubernetes'
 * controller. The first rule that excludes the node applies; its message names the value in the
 * manifest and the value of the node. */

#include "agent/daemonset/rules/rules.h"

#include "agent/daemonset/rules/pod-affinity.h"
#include "agent/daemonset/rules/tolerations.h"
#include "agent/model/match.h"
#include "agent/model/names.h"
#include "common/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void daemonset_refusal_done(DaemonSetRefusal *refusal) {
        free(refusal->message);
        *refusal = (DaemonSetRefusal){ 0 };
}

void daemonset_decision_done(DaemonSetDecision *decision) {
        free(decision->why);
        *decision = (DaemonSetDecision){ 0 };
}

/* 1: decided; or -ENOMEM. */
static int set_daemonset_decision(DaemonSetDecision *decision, DaemonSetVerdict verdict,
                                  const char *rule, const char *format, ...) printf_like(4, 5);

static int set_daemonset_decision(DaemonSetDecision *decision, DaemonSetVerdict verdict,
                                  const char *rule, const char *format, ...) {
        va_list ap;

        free(decision->why);
        decision->verdict = verdict;
        decision->rule = rule;
        va_start(ap, format);
        decision->why = format_message(format, ap);
        va_end(ap);
        if (!decision->why)
                return -ENOMEM;
        return 1;
}

static int evaluate_node_name(const DaemonSet *set, const NodeLabelsTaints *node,
                              DaemonSetDecision *decision) {
        const char *name = set->spec.template.spec.node_name;
        char text[EXCERPT_SIZE];

        if (!name || streq(name, node->name))
                return 0;
        return set_daemonset_decision(decision, DAEMONSET_SHOULD_STOP, "nodeName",
                                      "nodeName is '%s', this node is '%s'", excerpt(text, name),
                                      node->name);
}

static int evaluate_node_selector(const DaemonSet *set, const NodeLabelsTaints *node,
                                  DaemonSetDecision *decision) {
        const KeyValue *miss = node_labels_find_miss(&set->spec.template.spec.node_selector, node);
        char key[EXCERPT_SIZE], text[EXCERPT_SIZE];
        const char *has = miss ? string_map_get(&node->labels, miss->key) : NULL;

        if (!miss)
                return 0;
        if (has)
                return set_daemonset_decision(decision, DAEMONSET_SHOULD_STOP, "nodeSelector",
                                              "nodeSelector requires %s=%s, the node has %s=%s",
                                              excerpt(key, miss->key), excerpt(text, miss->value),
                                              miss->key, has);
        return set_daemonset_decision(decision, DAEMONSET_SHOULD_STOP, "nodeSelector",
                                      "nodeSelector requires %s=%s, the node lacks the label %s",
                                      excerpt(key, miss->key), excerpt(text, miss->value),
                                      miss->key);
}

/* The first requirement of a term that the node does not meet. */
static const SelectorRequirement *find_unmet_requirement(const NodeSelectorTerm *term,
                                                         const NodeLabelsTaints *node,
                                                         const char **ret_has) {
        const SelectorRequirement *miss;

        for (size_t i = 0; i < term->match_fields.n; i++)
                if (!requirement_matches(&term->match_fields.items[i], node->name)) {
                        *ret_has = node->name;
                        return &term->match_fields.items[i];
                }
        miss = requirements_find_miss(&term->match_expressions, &node->labels);
        if (miss)
                *ret_has = string_map_get(&node->labels, miss->key);
        return miss;
}

static int evaluate_node_affinity(const DaemonSet *set, const NodeLabelsTaints *node,
                                  DaemonSetDecision *decision) {
        const Affinity *affinity = set->spec.template.spec.affinity;
        const NodeSelector *required =
                affinity && affinity->node_affinity ? affinity->node_affinity->required : NULL;
        const SelectorRequirement *miss;
        char text[REQUIREMENT_SIZE];
        const char *has = NULL;

        if (!required || node_selector_matches(required, node))
                return 0;
        miss = find_unmet_requirement(&required->terms.items[0], node, &has);
        if (!miss)
                return set_daemonset_decision(
                        decision, DAEMONSET_SHOULD_STOP, "nodeAffinity",
                        "the required node affinity has an empty term, which no node matches");
        requirement_format(miss, text);
        if (required->terms.n > 1)
                return set_daemonset_decision(
                        decision, DAEMONSET_SHOULD_STOP, "nodeAffinity",
                        "none of the %zu terms of the required node affinity matches; the "
                        "first is %s, the node has %s%s%s",
                        required->terms.n, text, has ? "'" : "", has ? has : "none",
                        has ? "'" : "");
        return set_daemonset_decision(decision, DAEMONSET_SHOULD_STOP, "nodeAffinity",
                                      "the required node affinity is %s, the node has %s%s%s", text,
                                      has ? "'" : "", has ? has : "none", has ? "'" : "");
}

/* The time at which the toleration of a taint ends; 0: never. */
static uint64_t toleration_end_time(const Toleration *toleration, const Taint *taint) {
        uint64_t added;

        if (!toleration->toleration_seconds.is_set || !taint->time_added ||
            parse_rfc3339(taint->time_added, &added) < 0)
                return 0;
        if (toleration->toleration_seconds.value <= 0)
                return added;
        if (toleration->toleration_seconds.value > INT32_MAX)
                return 0;
        return added + (uint64_t) toleration->toleration_seconds.value * USEC_PER_SEC;
}

static void limit_decision_until(DaemonSetDecision *decision, uint64_t when) {
        if (decision->until == 0 || when < decision->until)
                decision->until = when;
}

/* NoExecute stops a running pod; NoSchedule prevents it from starting; PreferNoSchedule has no
 * effect if there is only one node. */
static int evaluate_no_execute_taint(const DaemonSet *set, const Taint *taint, uint64_t now,
                                     DaemonSetDecision *decision) {
        const Toleration *toleration = daemonset_find_toleration(set, taint);
        char text[TAINT_SIZE];
        uint64_t end;

        if (!toleration)
                return set_daemonset_decision(decision, DAEMONSET_SHOULD_STOP, "taint",
                                              "the taint %s is not tolerated",
                                              taint_format(taint, text));
        end = toleration_end_time(toleration, taint);
        if (end == 0)
                return 0;
        if (now >= end)
                return set_daemonset_decision(
                        decision, DAEMONSET_SHOULD_STOP, "taint",
                        "the toleration of the taint %s for %" PRId64 "s has ended",
                        taint_format(taint, text), toleration->toleration_seconds.value);
        limit_decision_until(decision, end);
        return 0;
}

static int evaluate_taints(const DaemonSet *set, const NodeLabelsTaints *node, uint64_t now,
                           DaemonSetDecision *decision) {
        char text[TAINT_SIZE];
        int r = 0;

        for (size_t i = 0; i < node->taints.n && r == 0; i++)
                if (node->taints.items[i].effect == TAINT_NO_EXECUTE)
                        r = evaluate_no_execute_taint(set, &node->taints.items[i], now, decision);
        for (size_t i = 0; i < node->taints.n && r == 0; i++) {
                const Taint *taint = &node->taints.items[i];

                if (taint->effect == TAINT_NO_SCHEDULE && !daemonset_find_toleration(set, taint))
                        r = set_daemonset_decision(decision, DAEMONSET_SHOULD_CONTINUE, "taint",
                                                   "the taint %s is not tolerated",
                                                   taint_format(taint, text));
        }
        return r;
}

static int evaluate_pod_affinity(const DaemonSet *set, const NodeLabelsTaints *node,
                                 const NodePods *node_pods, DaemonSetDecision *decision) {
        cleanup_with(pod_affinity_mismatch_done) PodAffinityMismatch mismatch = { 0 };
        int r = pod_affinity_find_mismatch(set, node, node_pods, &mismatch);

        if (r <= 0)
                return r;
        return set_daemonset_decision(decision, DAEMONSET_SHOULD_CONTINUE, mismatch.rule, "%s",
                                      mismatch.why);
}

/* No rule excludes the node; the message names the rule that selects it, if any. */
static int accept_node(const DaemonSet *set, const NodeLabelsTaints *node,
                       DaemonSetDecision *decision) {
        const PodSpec *spec = &set->spec.template.spec;
        bool has_affinity = spec->affinity && spec->affinity->node_affinity &&
                            spec->affinity->node_affinity->required;

        if (spec->node_selector.n > 0)
                return set_daemonset_decision(decision, DAEMONSET_SHOULD_RUN, "nodeSelector",
                                              "the node has all labels of nodeSelector");
        if (has_affinity)
                return set_daemonset_decision(decision, DAEMONSET_SHOULD_RUN, "nodeAffinity",
                                              "the required node affinity matches the node");
        if (spec->node_name)
                return set_daemonset_decision(decision, DAEMONSET_SHOULD_RUN, "nodeName",
                                              "nodeName names this node");
        if (node->taints.n > 0)
                return set_daemonset_decision(
                        decision, DAEMONSET_SHOULD_RUN, "taint",
                        "no taint of the node excludes it, and nothing requires a "
                        "different node");
        return set_daemonset_decision(decision, DAEMONSET_SHOULD_RUN, NULL,
                                      "nothing requires a different node");
}

int daemonset_evaluate_placement(const DaemonSet *set, const NodeLabelsTaints *node,
                                 const NodePods *node_pods, uint64_t now_realtime,
                                 DaemonSetDecision *ret) {
        DaemonSetDecision decision = { 0 };
        int r;

        r = evaluate_node_name(set, node, &decision);
        if (r == 0)
                r = evaluate_node_selector(set, node, &decision);
        if (r == 0)
                r = evaluate_node_affinity(set, node, &decision);
        if (r == 0)
                r = evaluate_taints(set, node, now_realtime, &decision);
        if (r == 0 && node_pods)
                r = evaluate_pod_affinity(set, node, node_pods, &decision);
        if (r == 0)
                r = accept_node(set, node, &decision);
        if (r < 0) {
                daemonset_decision_done(&decision);
                return r;
        }
        *ret = decision;
        return 0;
}
