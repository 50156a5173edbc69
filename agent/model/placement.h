/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Scheduling constraints of core/v1: label and node selectors, affinity, taints and tolerations.
 * Plain data; model/match.h implements matching. */

#include "agent/model/values.h"

/* Label selectors support the first four only. */
typedef enum SelectorOperator {
        SELECTOR_OPERATOR_UNSET,
        SELECTOR_IN,
        SELECTOR_NOT_IN,
        SELECTOR_EXISTS,
        SELECTOR_DOES_NOT_EXIST,
        SELECTOR_GT,
        SELECTOR_LT,
        SELECTOR_OTHER, /* from a newer API server: matches nothing */
        N_SELECTOR_OPERATORS,
} SelectorOperator;

typedef enum TaintEffect {
        TAINT_EFFECT_UNSET, /* in a toleration: all effects */
        TAINT_NO_SCHEDULE,
        TAINT_PREFER_NO_SCHEDULE,
        TAINT_NO_EXECUTE,
        N_TAINT_EFFECTS,
        TAINT_EFFECT_OTHER = N_TAINT_EFFECTS, /* in a toleration from a newer API server: no
                                               * effect */
} TaintEffect;

typedef enum TolerationOperator {
        TOLERATION_OPERATOR_UNSET, /* Equal */
        TOLERATION_EXISTS,
        TOLERATION_EQUAL,
        TOLERATION_OTHER, /* from a newer API server: tolerates nothing */
        N_TOLERATION_OPERATORS,
} TolerationOperator;

extern const char *const selector_operator_names[N_SELECTOR_OPERATORS];
extern const char *const taint_effect_names[N_TAINT_EFFECTS + 1]; /* for tolerations, too */
extern const char *const toleration_operator_names[N_TOLERATION_OPERATORS];

typedef struct SelectorRequirement {
        char *key;
        SelectorOperator op;
        char **values;
} SelectorRequirement;

typedef LIST_OF(SelectorRequirement) SelectorRequirements;

/* All requirements must match; an empty selector matches everything. */
typedef struct LabelSelector {
        StringMap match_labels;
        SelectorRequirements match_expressions;
} LabelSelector;

/* All requirements must match; an empty term matches nothing. */
typedef struct NodeSelectorTerm {
        SelectorRequirements match_expressions; /* labels */
        SelectorRequirements match_fields;      /* "metadata.name" */
} NodeSelectorTerm;

/* One of the terms must match. */
typedef struct NodeSelector {
        LIST_OF(NodeSelectorTerm) terms;
} NodeSelector;

typedef struct PreferredSchedulingTerm {
        OptionalInt weight;
        NodeSelectorTerm preference;
} PreferredSchedulingTerm;

typedef struct NodeAffinity {
        NodeSelector *required;
        LIST_OF(PreferredSchedulingTerm) preferred;
} NodeAffinity;

typedef struct PodAffinityTerm {
        LabelSelector *label_selector; /* NULL: matches no pod */
        char **namespaces; /* if there is no selector either: the namespace of the pod itself */
        char *topology_key;
        LabelSelector *namespace_selector;
        char **match_label_keys;
        char **mismatch_label_keys;
} PodAffinityTerm;

typedef struct WeightedPodAffinityTerm {
        OptionalInt weight;
        PodAffinityTerm term;
} WeightedPodAffinityTerm;

/* Pod affinity and pod anti-affinity have the same structure. */
typedef struct PodAffinity {
        LIST_OF(PodAffinityTerm) required;
        LIST_OF(WeightedPodAffinityTerm) preferred;
} PodAffinity;

typedef struct Affinity {
        NodeAffinity *node_affinity;
        PodAffinity *pod_affinity;
        PodAffinity *pod_anti_affinity;
} Affinity;

typedef struct Toleration {
        char *key; /* NULL, with Exists: every key */
        TolerationOperator op;
        char *value;
        TaintEffect effect;
        OptionalInt toleration_seconds; /* of NoExecute */
} Toleration;

typedef LIST_OF(Toleration) TolerationList;

typedef struct Taint {
        char *key;
        char *value;
        TaintEffect effect;
        char *time_added; /* RFC 3339; NULL: unset */
} Taint;

typedef LIST_OF(Taint) TaintList;
