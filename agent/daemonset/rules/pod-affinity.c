/* SPDX-License-Identifier: Apache-2.0 */

/* Pod affinity; see the header. */

#include "agent/daemonset/rules/pod-affinity.h"

#include "agent/model/match.h"
#include "common/strv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* The pod with the term: its labels and its namespace. */
typedef struct AffinityTermOwner {
        const StringMap *labels;
        const char *namespace;
} AffinityTermOwner;

void pod_affinity_mismatch_done(PodAffinityMismatch *mismatch) {
        free(mismatch->why);
        *mismatch = (PodAffinityMismatch){ 0 };
}

/* Labels of namespaces are unknown, except that each namespace has the label with its name. */
static bool term_selects_namespace(const PodAffinityTerm *term, const AffinityTermOwner *owner_pod,
                                   const char *namespace) {
        static char name_key[] = "kubernetes.io/metadata.name";
        char *value = strdupa(namespace);
        KeyValue label = { .key = name_key, .value = value };
        const StringMap labels = { .items = &label, .n = 1 };

        if (!term->namespaces && !term->namespace_selector)
                return streq(namespace, owner_pod->namespace);
        return (term->namespaces && strv_contains(term->namespaces, namespace)) ||
               (term->namespace_selector &&
                label_selector_matches(term->namespace_selector, &labels));
}

/* For each key that the term's own pod has, another pod must have the same value, or must not have
 * the key. */
static bool match_label_keys_hold(char *const *keys, const AffinityTermOwner *owner_pod,
                                  const StringMap *labels, bool must_match) {
        for (size_t i = 0; keys && keys[i]; i++) {
                const char *own = string_map_get(owner_pod->labels, keys[i]);

                if (own && streq_ptr(string_map_get(labels, keys[i]), own) != must_match)
                        return false;
        }
        return true;
}

static bool term_selects_pod(const PodAffinityTerm *term, const AffinityTermOwner *owner_pod,
                             const StringMap *labels, const char *namespace) {
        return term_selects_namespace(term, owner_pod, namespace) &&
               label_selector_matches(term->label_selector, labels) &&
               match_label_keys_hold(term->match_label_keys, owner_pod, labels, true) &&
               match_label_keys_hold(term->mismatch_label_keys, owner_pod, labels, false);
}

/* Pods of cluster users cannot keep the DaemonSet of a file off the node. */
static bool is_peer_of_set(const DaemonSet *set, const Pod *pod) {
        return object_source_heeds(set->metadata.source, pod->metadata.source) &&
               !daemonset_controls_pod(set, pod);
}

static const Pod *find_selected_pod(const PodAffinityTerm *term, const AffinityTermOwner *owner_pod,
                                    const DaemonSet *set, const NodePods *node_pods) {
        for (size_t i = 0; i < node_pods->n; i++)
                if (term_selects_pod(term, owner_pod, &node_pods->items[i]->metadata.labels,
                                     node_pods->items[i]->metadata.namespace) &&
                    is_peer_of_set(set, node_pods->items[i]))
                        return node_pods->items[i];
        return NULL;
}

static int set_mismatch(PodAffinityMismatch *ret, const char *rule, const char *format, ...)
        printf_like(3, 4);

static int set_mismatch(PodAffinityMismatch *ret, const char *rule, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        ret->why = format_message(format, ap);
        va_end(ap);
        if (!ret->why)
                return -ENOMEM;
        ret->rule = rule;
        return 1;
}

/* The first pod of a group with affinity to itself may start, because otherwise none could. */
static bool term_selects_own_pod(const PodAffinityTerm *term, const AffinityTermOwner *owner_pod) {
        return term_selects_pod(term, owner_pod, owner_pod->labels, owner_pod->namespace);
}

static int check_pod_affinity_terms(const DaemonSet *set, const NodeLabelsTaints *node,
                                    const NodePods *node_pods, const AffinityTermOwner *owner_pod,
                                    PodAffinityMismatch *ret) {
        const PodAffinity *affinity = set->spec.template.spec.affinity->pod_affinity;

        for (size_t i = 0; affinity && i < affinity->required.n; i++) {
                const PodAffinityTerm *term = &affinity->required.items[i];

                if (!string_map_get(&node->labels, term->topology_key))
                        return set_mismatch(
                                ret, "podAffinity",
                                "podAffinity requires pods of the same %s, but the node lacks "
                                "that label",
                                term->topology_key);
                if (!find_selected_pod(term, owner_pod, set, node_pods) &&
                    !term_selects_own_pod(term, owner_pod))
                        return set_mismatch(ret, "podAffinity",
                                            "no pod on this node matches podAffinity");
        }
        return 0;
}

static int check_pod_anti_affinity_terms(const DaemonSet *set, const NodeLabelsTaints *node,
                                         const NodePods *node_pods,
                                         const AffinityTermOwner *owner_pod,
                                         PodAffinityMismatch *ret) {
        const PodAffinity *affinity = set->spec.template.spec.affinity->pod_anti_affinity;

        for (size_t i = 0; affinity && i < affinity->required.n; i++) {
                const PodAffinityTerm *term = &affinity->required.items[i];
                const Pod *pod = string_map_get(&node->labels, term->topology_key)
                                         ? find_selected_pod(term, owner_pod, set, node_pods)
                                         : NULL;

                if (pod)
                        return set_mismatch(ret, "podAntiAffinity",
                                            "podAntiAffinity excludes a node with pod %s/%s",
                                            pod->metadata.namespace, pod->metadata.name);
        }
        return 0;
}

/* Few pods have such terms, so this is checked first. */
static const PodAffinity *required_anti_affinity(const Pod *pod) {
        const Affinity *affinity = pod->spec.affinity;
        const PodAffinity *anti = affinity ? affinity->pod_anti_affinity : NULL;

        return anti && anti->required.n > 0 ? anti : NULL;
}

/* The anti-affinity of an existing pod may exclude the set's pods. */
static int check_existing_anti_affinity(const Pod *peer, const NodeLabelsTaints *node,
                                        const AffinityTermOwner *owner_pod,
                                        PodAffinityMismatch *ret) {
        const PodAffinity *anti = required_anti_affinity(peer);
        const AffinityTermOwner other = { &peer->metadata.labels, peer->metadata.namespace };

        for (size_t i = 0; i < anti->required.n; i++)
                if (string_map_get(&node->labels, anti->required.items[i].topology_key) &&
                    term_selects_pod(&anti->required.items[i], &other, owner_pod->labels,
                                     owner_pod->namespace))
                        return set_mismatch(ret, "podAntiAffinity",
                                            "podAntiAffinity of pod %s/%s excludes it",
                                            peer->metadata.namespace, peer->metadata.name);
        return 0;
}

int pod_affinity_find_mismatch(const DaemonSet *set, const NodeLabelsTaints *node,
                               const NodePods *node_pods, PodAffinityMismatch *ret) {
        const AffinityTermOwner owner_pod = { &set->spec.template.metadata.labels,
                                              set->metadata.namespace };
        int r = 0;

        if (set->spec.template.spec.affinity) {
                r = check_pod_affinity_terms(set, node, node_pods, &owner_pod, ret);
                if (r == 0)
                        r = check_pod_anti_affinity_terms(set, node, node_pods, &owner_pod, ret);
        }
        for (size_t i = 0; i < node_pods->n && r == 0; i++)
                if (required_anti_affinity(node_pods->items[i]) &&
                    is_peer_of_set(set, node_pods->items[i]))
                        r = check_existing_anti_affinity(node_pods->items[i], node, &owner_pod,
                                                         ret);
        return r;
}
