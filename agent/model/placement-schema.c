/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of model/placement.h. Rules that involve two fields (values by operator) are in
 * manifest/validate-placement.c. */

#include "agent/model/names.h"
#include "agent/model/placement.h"
#include "agent/model/schema.h"

#define REQUIRED  .is_required = true
#define CHECK(fn) .check = (fn)

const char *const selector_operator_names[N_SELECTOR_OPERATORS] = {
        [SELECTOR_IN] = "In",         [SELECTOR_NOT_IN] = "NotIn",
        [SELECTOR_EXISTS] = "Exists", [SELECTOR_DOES_NOT_EXIST] = "DoesNotExist",
        [SELECTOR_GT] = "Gt",         [SELECTOR_LT] = "Lt",
        [SELECTOR_OTHER] = "Other",
};

const char *const taint_effect_names[N_TAINT_EFFECTS + 1] = {
        [TAINT_NO_SCHEDULE] = "NoSchedule",
        [TAINT_PREFER_NO_SCHEDULE] = "PreferNoSchedule",
        [TAINT_NO_EXECUTE] = "NoExecute",
        [TAINT_EFFECT_OTHER] = "Other",
};

const char *const toleration_operator_names[N_TOLERATION_OPERATORS] = {
        [TOLERATION_EXISTS] = "Exists",
        [TOLERATION_EQUAL] = "Equal",
        [TOLERATION_OTHER] = "Other",
};

/* clang-format off */
static const Field label_requirement_fields[] = {
        FIELD("key",                    STRING,     SelectorRequirement, key, REQUIRED,
              CHECK(check_label_key)),
        FIELD("operator",               ENUM,       SelectorRequirement, op, REQUIRED,
              .names = selector_operator_names, .n_names = SELECTOR_GT,
              .other = SELECTOR_OTHER),
        FIELD("values",                 STRINGS,    SelectorRequirement, values,
              CHECK(check_label_value), .is_manifest_check = true),
};
static const Schema label_requirement_schema = {
        .name = "LabelSelectorRequirement", .size = sizeof(SelectorRequirement),
        .fields = label_requirement_fields, .n_fields = N_ELEMENTS(label_requirement_fields),
};

static const Field label_selector_fields[] = {
        FIELD("matchLabels",            STRING_MAP, LabelSelector, match_labels),
        FIELD("matchExpressions",       LIST,       LabelSelector, match_expressions,
              .schema = &label_requirement_schema),
};
const Schema label_selector_schema = SCHEMA(LabelSelector, label_selector_fields);

static const Field node_requirement_fields[] = {
        FIELD("key",                    STRING,     SelectorRequirement, key, REQUIRED),
        FIELD("operator",               ENUM,       SelectorRequirement, op, REQUIRED,
              ENUM_NAMES(selector_operator_names), .other = SELECTOR_OTHER),
        FIELD("values",                 STRINGS,    SelectorRequirement, values),
};
static const Schema node_requirement_schema = {
        .name = "NodeSelectorRequirement", .size = sizeof(SelectorRequirement),
        .fields = node_requirement_fields, .n_fields = N_ELEMENTS(node_requirement_fields),
};

static const Field node_selector_term_fields[] = {
        FIELD("matchExpressions",       LIST,       NodeSelectorTerm, match_expressions,
              .schema = &node_requirement_schema),
        FIELD("matchFields",            LIST,       NodeSelectorTerm, match_fields,
              .schema = &node_requirement_schema),
};
static const Schema node_selector_term_schema = SCHEMA(NodeSelectorTerm, node_selector_term_fields);

static const Field node_selector_fields[] = {
        FIELD("nodeSelectorTerms",      LIST,       NodeSelector, terms, REQUIRED,
              .schema = &node_selector_term_schema),
};
const Schema node_selector_schema = SCHEMA(NodeSelector, node_selector_fields);

static const Field preferred_scheduling_term_fields[] = {
        FIELD("weight",                 INT,        PreferredSchedulingTerm, weight, REQUIRED,
              .min = 1, .max = 100),
        FIELD("preference",             OBJECT,     PreferredSchedulingTerm, preference, REQUIRED,
              .schema = &node_selector_term_schema),
};
static const Schema preferred_scheduling_term_schema =
        SCHEMA(PreferredSchedulingTerm, preferred_scheduling_term_fields);

static const Field node_affinity_fields[] = {
        FIELD("requiredDuringSchedulingIgnoredDuringExecution",  OPTIONAL, NodeAffinity, required,
              .schema = &node_selector_schema),
        FIELD("preferredDuringSchedulingIgnoredDuringExecution", LIST,     NodeAffinity, preferred,
              .schema = &preferred_scheduling_term_schema),
};
static const Schema node_affinity_schema = SCHEMA(NodeAffinity, node_affinity_fields);

static const Field pod_affinity_term_fields[] = {
        FIELD("labelSelector",          OPTIONAL,   PodAffinityTerm, label_selector,
              .schema = &label_selector_schema),
        FIELD("namespaces",             STRINGS,    PodAffinityTerm, namespaces, CHECK(check_dns_label)),
        FIELD("topologyKey",            STRING,     PodAffinityTerm, topology_key, REQUIRED,
              CHECK(check_label_key)),
        FIELD("namespaceSelector",      OPTIONAL,   PodAffinityTerm, namespace_selector,
              .schema = &label_selector_schema),
        FIELD("matchLabelKeys",         STRINGS,    PodAffinityTerm, match_label_keys,
              CHECK(check_label_key)),
        FIELD("mismatchLabelKeys",      STRINGS,    PodAffinityTerm, mismatch_label_keys,
              CHECK(check_label_key)),
};
static const Schema pod_affinity_term_schema = SCHEMA(PodAffinityTerm, pod_affinity_term_fields);

static const Field weighted_pod_affinity_term_fields[] = {
        FIELD("weight",                 INT,        WeightedPodAffinityTerm, weight, REQUIRED,
              .min = 1, .max = 100),
        FIELD("podAffinityTerm",        OBJECT,     WeightedPodAffinityTerm, term, REQUIRED,
              .schema = &pod_affinity_term_schema),
};
static const Schema weighted_pod_affinity_term_schema =
        SCHEMA(WeightedPodAffinityTerm, weighted_pod_affinity_term_fields);

static const Field pod_affinity_fields[] = {
        FIELD("requiredDuringSchedulingIgnoredDuringExecution",  LIST, PodAffinity, required,
              .schema = &pod_affinity_term_schema),
        FIELD("preferredDuringSchedulingIgnoredDuringExecution", LIST, PodAffinity, preferred,
              .schema = &weighted_pod_affinity_term_schema),
};
static const Schema pod_affinity_schema = SCHEMA(PodAffinity, pod_affinity_fields);

static const Field affinity_fields[] = {
        FIELD("nodeAffinity",           OPTIONAL,   Affinity, node_affinity, .schema = &node_affinity_schema),
        FIELD("podAffinity",            OPTIONAL,   Affinity, pod_affinity, .schema = &pod_affinity_schema),
        FIELD("podAntiAffinity",        OPTIONAL,   Affinity, pod_anti_affinity,
              .schema = &pod_affinity_schema),
};
const Schema affinity_schema = SCHEMA(Affinity, affinity_fields);

static const Field toleration_fields[] = {
        FIELD("key",                    STRING,     Toleration, key, CHECK(check_label_key)),
        FIELD("operator",               ENUM,       Toleration, op,
              ENUM_NAMES(toleration_operator_names), .other = TOLERATION_OTHER),
        FIELD("value",                  STRING,     Toleration, value, CHECK(check_label_value)),
        FIELD("effect",                 ENUM,       Toleration, effect, ENUM_NAMES(taint_effect_names),
              .other = TAINT_EFFECT_OTHER),
        FIELD("tolerationSeconds",      INT,        Toleration, toleration_seconds),
};
const Schema toleration_schema = SCHEMA(Toleration, toleration_fields);

static const Field taint_fields[] = {
        FIELD("key",                    STRING,     Taint, key, REQUIRED, CHECK(check_label_key)),
        FIELD("value",                  STRING,     Taint, value, CHECK(check_label_value)),
        FIELD("effect",                 ENUM,       Taint, effect, REQUIRED,
              .names = taint_effect_names, .n_names = N_TAINT_EFFECTS),
        FIELD("timeAdded",              STRING,     Taint, time_added, CHECK(check_time)),
};
const Schema taint_schema = SCHEMA(Taint, taint_fields);
/* clang-format on */
