/* SPDX-License-Identifier: Apache-2.0 */

/* Rules in the order in which the controller asks them. The first that says no has decided, and
 * says why in words that name what is in the file and what is on the node. */

#include "agent/daemonset/daemonset.h"

#include "agent/daemonset/peers.h"
#include "agent/daemonset/tolerations.h"
#include "agent/model/match.h"
#include "agent/model/names.h"
#include "common/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void daemon_decision_done(DaemonDecision *decision) {
        free(decision->why);
        *decision = (DaemonDecision){ 0 };
}

/* 1: decided; or -ENOMEM. */
static int decide(DaemonDecision *decision, DaemonVerdict verdict, const char *rule,
                  const char *format, ...) printf_like(4, 5);

static int decide(DaemonDecision *decision, DaemonVerdict verdict, const char *rule,
                  const char *format, ...) {
        va_list ap;
        int n;

        free(decision->why);
        decision->verdict = verdict;
        decision->rule = rule;
        va_start(ap, format);
        n = vasprintf(&decision->why, format, ap);
        va_end(ap);
        if (n < 0) {
                decision->why = NULL;
                return -ENOMEM;
        }
        return 1;
}

static int check_node_name(const DaemonSet *set, const NodeFacts *node, DaemonDecision *decision) {
        const char *name = set->spec.template.spec.node_name;
        char text[EXCERPT_SIZE];

        if (!name || streq(name, node->name))
                return 0;
        return decide(decision, DAEMON_STOP, "nodeName", "nodeName is '%s', this node is '%s'",
                      excerpt(text, name), node->name);
}

static int check_node_selector(const DaemonSet *set, const NodeFacts *node,
                               DaemonDecision *decision) {
        const KeyValue *miss = node_labels_find_miss(&set->spec.template.spec.node_selector, node);
        char key[EXCERPT_SIZE], text[EXCERPT_SIZE];
        const char *has = miss ? string_map_get(&node->labels, miss->key) : NULL;

        if (!miss)
                return 0;
        if (has)
                return decide(decision, DAEMON_STOP, "nodeSelector",
                              "nodeSelector wants %s=%s, the node has %s=%s",
                              excerpt(key, miss->key), excerpt(text, miss->value), miss->key, has);
        return decide(decision, DAEMON_STOP, "nodeSelector",
                      "nodeSelector wants %s=%s, the node has no label %s", excerpt(key, miss->key),
                      excerpt(text, miss->value), miss->key);
}

/* Why one term does not hold: its first requirement that does not. */
static const SelectorRequirement *find_term_miss(const NodeSelectorTerm *term,
                                                 const NodeFacts *node, const char **ret_has) {
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

static int check_node_affinity(const DaemonSet *set, const NodeFacts *node,
                               DaemonDecision *decision) {
        const Affinity *affinity = set->spec.template.spec.affinity;
        const NodeSelector *required =
                affinity && affinity->node_affinity ? affinity->node_affinity->required : NULL;
        const SelectorRequirement *miss;
        char text[REQUIREMENT_SIZE];
        const char *has = NULL;

        if (!required || node_selector_matches(required, node))
                return 0;
        miss = find_term_miss(&required->terms.items[0], node, &has);
        if (!miss)
                return decide(
                        decision, DAEMON_STOP, "nodeAffinity",
                        "the required node affinity has an empty term, which no node matches");
        requirement_format(miss, text);
        if (required->terms.n > 1)
                return decide(decision, DAEMON_STOP, "nodeAffinity",
                              "none of the %zu terms of the required node affinity matches; the "
                              "first wants %s, the node has %s%s%s",
                              required->terms.n, text, has ? "'" : "", has ? has : "none",
                              has ? "'" : "");
        return decide(decision, DAEMON_STOP, "nodeAffinity",
                      "the required node affinity wants %s, the node has %s%s%s", text,
                      has ? "'" : "", has ? has : "none", has ? "'" : "");
}

/* When the toleration of a taint ends; 0: never. */
static uint64_t end_of(const Toleration *toleration, const Taint *taint) {
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

static void look_again_at(DaemonDecision *decision, uint64_t when) {
        if (decision->until == 0 || when < decision->until)
                decision->until = when;
}

/* NoExecute ends what runs; NoSchedule keeps it from starting; PreferNoSchedule is a wish, and
 * where there is one node, no choice. */
static int check_no_execute(const DaemonSet *set, const Taint *taint, uint64_t now,
                            DaemonDecision *decision) {
        const Toleration *toleration = find_toleration(set, taint);
        char text[TAINT_SIZE];
        uint64_t end;

        if (!toleration)
                return decide(decision, DAEMON_STOP, "taint", "the taint %s is not tolerated",
                              taint_format(taint, text));
        end = end_of(toleration, taint);
        if (end == 0)
                return 0;
        if (now >= end)
                return decide(decision, DAEMON_STOP, "taint",
                              "the taint %s was tolerated for %" PRId64 "s, and these are over",
                              taint_format(taint, text), toleration->toleration_seconds.value);
        look_again_at(decision, end);
        return 0;
}

static int check_taints(const DaemonSet *set, const NodeFacts *node, uint64_t now,
                        DaemonDecision *decision) {
        char text[TAINT_SIZE];
        int r = 0;

        for (size_t i = 0; i < node->taints.n && r == 0; i++)
                if (node->taints.items[i].effect == TAINT_NO_EXECUTE)
                        r = check_no_execute(set, &node->taints.items[i], now, decision);
        for (size_t i = 0; i < node->taints.n && r == 0; i++) {
                const Taint *taint = &node->taints.items[i];

                if (taint->effect == TAINT_NO_SCHEDULE && !find_toleration(set, taint))
                        r = decide(decision, DAEMON_KEEP, "taint", "the taint %s is not tolerated",
                                   taint_format(taint, text));
        }
        return r;
}

static int check_peers(const DaemonSet *set, const NodeFacts *node, const DaemonPeers *peers,
                       DaemonDecision *decision) {
        cleanup_with(peer_trouble_done) PeerTrouble trouble = { 0 };
        int r = peers_find_trouble(set, node, peers, &trouble);

        if (r <= 0)
                return r;
        return decide(decision, DAEMON_KEEP, trouble.rule, "%s", trouble.why);
}

/* Nothing says no: what was asked for at all? */
static int agree(const DaemonSet *set, const NodeFacts *node, DaemonDecision *decision) {
        const PodSpec *spec = &set->spec.template.spec;
        bool has_affinity = spec->affinity && spec->affinity->node_affinity &&
                            spec->affinity->node_affinity->required;

        if (spec->node_selector.n > 0)
                return decide(decision, DAEMON_RUN, "nodeSelector",
                              "the node has all labels that nodeSelector wants");
        if (has_affinity)
                return decide(decision, DAEMON_RUN, "nodeAffinity",
                              "the required node affinity matches the node");
        if (spec->node_name)
                return decide(decision, DAEMON_RUN, "nodeName", "nodeName names this node");
        if (node->taints.n > 0)
                return decide(decision, DAEMON_RUN, "taint",
                              "no taint of the node keeps it away, and nothing asks for another "
                              "node");
        return decide(decision, DAEMON_RUN, NULL, "nothing asks for another node");
}

int daemonset_evaluate(const DaemonSet *set, const NodeFacts *node, const DaemonPeers *peers,
                       uint64_t now_realtime, DaemonDecision *ret) {
        DaemonDecision decision = { 0 };
        int r;

        r = check_node_name(set, node, &decision);
        if (r == 0)
                r = check_node_selector(set, node, &decision);
        if (r == 0)
                r = check_node_affinity(set, node, &decision);
        if (r == 0)
                r = check_taints(set, node, now_realtime, &decision);
        if (r == 0 && peers)
                r = check_peers(set, node, peers, &decision);
        if (r == 0)
                r = agree(set, node, &decision);
        if (r < 0) {
                daemon_decision_done(&decision);
                return r;
        }
        *ret = decision;
        return 0;
}
