/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemonset/peers.h"

#include "agent/model/match.h"
#include "common/strv.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Whose term it is: the labels and the namespace that it takes for its own. */
typedef struct Asker {
        const StringMap *labels;
        const char *namespace;
} Asker;

void peer_trouble_done(PeerTrouble *trouble) {
        free(trouble->why);
        *trouble = (PeerTrouble){ 0 };
}

/* The one label that every namespace has is its name. */
static bool namespace_is_meant(const PodAffinityTerm *term, const Asker *asker,
                               const char *namespace) {
        static char name_key[] = "kubernetes.io/metadata.name";
        char *value = strdupa(namespace);
        KeyValue label = { .key = name_key, .value = value };
        const StringMap labels = { .items = &label, .n = 1 };

        if (!term->namespaces && !term->namespace_selector)
                return streq(namespace, asker->namespace);
        return (term->namespaces && strv_contains(term->namespaces, namespace)) ||
               (term->namespace_selector &&
                label_selector_matches(term->namespace_selector, &labels));
}

/* For each key that the asker has, a pod must have the same value, or must have it not. */
static bool label_keys_hold(char *const *keys, const Asker *asker, const StringMap *labels,
                            bool must_match) {
        for (size_t i = 0; keys && keys[i]; i++) {
                const char *own = string_map_get(asker->labels, keys[i]);

                if (own && streq_ptr(string_map_get(labels, keys[i]), own) != must_match)
                        return false;
        }
        return true;
}

static bool term_means(const PodAffinityTerm *term, const Asker *asker, const StringMap *labels,
                       const char *namespace) {
        return namespace_is_meant(term, asker, namespace) &&
               label_selector_matches(term->label_selector, labels) &&
               label_keys_hold(term->match_label_keys, asker, labels, true) &&
               label_keys_hold(term->mismatch_label_keys, asker, labels, false);
}

static bool is_own(const DaemonSet *set, const Pod *pod) {
        const OwnerReference *owner = object_controller(&pod->metadata);

        return owner && streq_ptr(owner->uid, set->metadata.uid);
}

static const Pod *find_meant(const PodAffinityTerm *term, const Asker *asker, const DaemonSet *set,
                             const DaemonPeers *peers) {
        for (size_t i = 0; i < peers->n; i++)
                if (!is_own(set, peers->items[i]) &&
                    term_means(term, asker, &peers->items[i]->metadata.labels,
                               peers->items[i]->metadata.namespace))
                        return peers->items[i];
        return NULL;
}

static int tell(PeerTrouble *ret, const char *rule, const char *format, ...) printf_like(3, 4);

static int tell(PeerTrouble *ret, const char *rule, const char *format, ...) {
        va_list ap;
        int n;

        va_start(ap, format);
        n = vasprintf(&ret->why, format, ap);
        va_end(ap);
        if (n < 0) {
                ret->why = NULL;
                return -ENOMEM;
        }
        ret->rule = rule;
        return 1;
}

/* The first of a group of pods that want one another's company is let in, or none ever came. */
static bool asks_for_itself(const PodAffinityTerm *term, const Asker *asker) {
        return term_means(term, asker, asker->labels, asker->namespace);
}

static int check_affinity(const DaemonSet *set, const NodeFacts *node, const DaemonPeers *peers,
                          const Asker *asker, PeerTrouble *ret) {
        const PodAffinity *affinity = set->spec.template.spec.affinity->pod_affinity;

        for (size_t i = 0; affinity && i < affinity->required.n; i++) {
                const PodAffinityTerm *term = &affinity->required.items[i];

                if (!string_map_get(&node->labels, term->topology_key))
                        return tell(ret, "podAffinity",
                                    "podAffinity asks for pods of the same %s, and the node has no "
                                    "such label",
                                    term->topology_key);
                if (!find_meant(term, asker, set, peers) && !asks_for_itself(term, asker))
                        return tell(ret, "podAffinity",
                                    "no pod on this node is one that podAffinity asks for");
        }
        return 0;
}

static int check_anti_affinity(const DaemonSet *set, const NodeFacts *node,
                               const DaemonPeers *peers, const Asker *asker, PeerTrouble *ret) {
        const PodAffinity *affinity = set->spec.template.spec.affinity->pod_anti_affinity;

        for (size_t i = 0; affinity && i < affinity->required.n; i++) {
                const PodAffinityTerm *term = &affinity->required.items[i];
                const Pod *pod = string_map_get(&node->labels, term->topology_key)
                                         ? find_meant(term, asker, set, peers)
                                         : NULL;

                if (pod)
                        return tell(ret, "podAntiAffinity",
                                    "podAntiAffinity does not want to be beside pod %s/%s",
                                    pod->metadata.namespace, pod->metadata.name);
        }
        return 0;
}

/* Those that are here may not want this one beside them. */
static int check_peer(const Pod *peer, const NodeFacts *node, const Asker *asker,
                      PeerTrouble *ret) {
        const Affinity *affinity = peer->spec.affinity;
        const PodAffinity *anti = affinity ? affinity->pod_anti_affinity : NULL;
        const Asker other = { &peer->metadata.labels, peer->metadata.namespace };

        for (size_t i = 0; anti && i < anti->required.n; i++)
                if (string_map_get(&node->labels, anti->required.items[i].topology_key) &&
                    term_means(&anti->required.items[i], &other, asker->labels, asker->namespace))
                        return tell(ret, "podAntiAffinity",
                                    "pod %s/%s does not want it beside itself (podAntiAffinity)",
                                    peer->metadata.namespace, peer->metadata.name);
        return 0;
}

int peers_find_trouble(const DaemonSet *set, const NodeFacts *node, const DaemonPeers *peers,
                       PeerTrouble *ret) {
        const Asker asker = { &set->spec.template.metadata.labels, set->metadata.namespace };
        int r = 0;

        if (set->spec.template.spec.affinity) {
                r = check_affinity(set, node, peers, &asker, ret);
                if (r == 0)
                        r = check_anti_affinity(set, node, peers, &asker, ret);
        }
        for (size_t i = 0; i < peers->n && r == 0; i++)
                if (!is_own(set, peers->items[i]))
                        r = check_peer(peers->items[i], node, &asker, ret);
        return r;
}
