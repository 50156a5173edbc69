/* SPDX-License-Identifier: Apache-2.0 */

/* Kubernetes' rules for nodeSelector, affinity and tolerations: the values that each operator
 * takes. */

#include "agent/manifest/validate-pod.h"
#include "agent/model/names.h"
#include "common/strv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
        PLACE_SIZE = 256
};

/* A list of requirements with its path and operators, for messages. */
typedef struct RequirementRules {
        const Rules *rules;
        const char *place; /* "spec.affinity…matchExpressions" */
        bool is_field;
} RequirementRules;

/* Checks the values of one requirement: 0 or -EINVAL with a message. */
static int check_requirement_values(const SelectorRequirement *requirement, Error *reterr) {
        size_t n = strv_length(requirement->values);
        char *end, text[EXCERPT_SIZE];

        switch (requirement->op) {
        case SELECTOR_IN:
        case SELECTOR_NOT_IN:
                return n > 0 ? 0
                             : error_setf(reterr, EINVAL,
                                          "must be specified when `operator` is 'In' or 'NotIn'");
        case SELECTOR_EXISTS:
        case SELECTOR_DOES_NOT_EXIST:
                return n == 0 ? 0
                              : error_setf(reterr, EINVAL,
                                           "may not be specified when `operator` is 'Exists' or "
                                           "'DoesNotExist'");
        case SELECTOR_GT:
        case SELECTOR_LT:
                if (n != 1)
                        return error_setf(reterr, EINVAL,
                                          "must be specified single value when `operator` is 'Lt' "
                                          "or 'Gt'");
                errno = 0;
                (void) strtoll(requirement->values[0], &end, 10);
                if (errno == 0 && end != requirement->values[0] && !*end)
                        return 0;
                return error_setf(reterr, EINVAL,
                                  "must be a whole number when `operator` is 'Lt' or 'Gt', not "
                                  "'%s'",
                                  excerpt(text, requirement->values[0]));
        case SELECTOR_OPERATOR_UNSET:
        case SELECTOR_OTHER:
        case N_SELECTOR_OPERATORS:
                break;
        }
        return 0;
}

static int check_label_values(const RequirementRules *list, const SelectorRequirement *requirement,
                              size_t i) {
        for (size_t j = 0; requirement->values && requirement->values[j]; j++) {
                int r = check_label_value(requirement->values[j], list->rules->reterr);

                if (r < 0)
                        return rules_at(list->rules, r, "%s[%zu].values[%zu]", list->place, i, j);
        }
        return 0;
}

static int check_label_requirement(const RequirementRules *list,
                                   const SelectorRequirement *requirement, size_t i) {
        int r = check_label_key(requirement->key, list->rules->reterr);

        if (r < 0)
                return rules_at(list->rules, r, "%s[%zu].key", list->place, i);
        if (rules_are_of_api(list->rules))
                return 0; /* the server does not check the values of preferences */
        r = check_requirement_values(requirement, list->rules->reterr);
        if (r < 0)
                return rules_at(list->rules, r, "%s[%zu].values", list->place, i);
        return check_label_values(list, requirement, i);
}

/* The only supported field of a node is its name. */
static int check_field_requirement(const RequirementRules *list,
                                   const SelectorRequirement *requirement, size_t i) {
        Error *reterr = list->rules->reterr;
        const char *at = "key";
        char text[EXCERPT_SIZE];
        int r = 0;

        if (requirement->op == SELECTOR_OTHER) /* the pod is rejected, or has no such preference */
                return 0;
        if (!streq(requirement->key, "metadata.name"))
                r = error_setf(reterr, EINVAL,
                               "not a valid field selector key: it must be metadata.name, not '%s'",
                               excerpt(text, requirement->key));
        else if (requirement->op != SELECTOR_IN && requirement->op != SELECTOR_NOT_IN) {
                at = "operator";
                r = error_setf(reterr, EINVAL, "must be In or NotIn for a field, not '%s'",
                               selector_operator_names[requirement->op]);
        } else if (strv_length(requirement->values) != 1) {
                at = "values";
                r = error_setf(reterr, EINVAL,
                               "must be only one value when `operator` is 'In' or 'NotIn' for node "
                               "field selector");
        } else {
                at = "values";
                r = check_dns_subdomain(requirement->values[0], reterr);
        }
        return r < 0 ? rules_at(list->rules, r, "%s[%zu].%s", list->place, i, at) : 0;
}

static int check_requirements(const RequirementRules *list,
                              const SelectorRequirements *requirements) {
        for (size_t i = 0; i < requirements->n; i++) {
                int r = list->is_field ? check_field_requirement(list, &requirements->items[i], i)
                                       : check_label_requirement(list, &requirements->items[i], i);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int check_node_selector_term(const Rules *rules, const NodeSelectorTerm *term,
                                    const char *place) {
        char labels[PLACE_SIZE], fields[PLACE_SIZE];
        const RequirementRules label_list = { .rules = rules, .place = labels };
        const RequirementRules field_list = { .rules = rules, .place = fields, .is_field = true };
        int r;

        (void) snprintf(labels, sizeof(labels), "%.230s.matchExpressions", place);
        (void) snprintf(fields, sizeof(fields), "%.230s.matchFields", place);
        r = check_requirements(&label_list, &term->match_expressions);
        return r < 0 ? r : check_requirements(&field_list, &term->match_fields);
}

#define REQUIRED_KEY  "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED_KEY "preferredDuringSchedulingIgnoredDuringExecution"

static int check_node_affinity_terms(const Rules *rules, const NodeAffinity *affinity) {
        char place[PLACE_SIZE];
        int r = 0;

        for (size_t i = 0; affinity->required && i < affinity->required->terms.n && r >= 0; i++) {
                (void) snprintf(
                        place, sizeof(place),
                        "spec.affinity.nodeAffinity." REQUIRED_KEY ".nodeSelectorTerms[%zu]", i);
                r = check_node_selector_term(rules, &affinity->required->terms.items[i], place);
        }
        for (size_t i = 0; i < affinity->preferred.n && r >= 0; i++) {
                (void) snprintf(place, sizeof(place),
                                "spec.affinity.nodeAffinity." PREFERRED_KEY "[%zu].preference", i);
                r = check_node_selector_term(rules, &affinity->preferred.items[i].preference,
                                             place);
        }
        return r;
}

int check_label_selector(const Rules *rules, const LabelSelector *selector, const char *place) {
        char expressions[PLACE_SIZE], key[EXCERPT_SIZE];
        const RequirementRules list = { .rules = rules, .place = expressions };

        for (size_t i = 0; i < selector->match_labels.n; i++) {
                const KeyValue *pair = &selector->match_labels.items[i];
                int r = check_label_key(pair->key, rules->reterr);

                if (r < 0)
                        return rules_at(rules, r, "%s.matchLabels", place);
                r = check_label_value(pair->value, rules->reterr);
                if (r < 0)
                        return rules_at(rules, r, "%s.matchLabels[%s]", place,
                                        excerpt(key, pair->key));
        }
        (void) snprintf(expressions, sizeof(expressions), "%.230s.matchExpressions", place);
        return check_requirements(&list, &selector->match_expressions);
}

/* matchLabelKeys and mismatchLabelKeys: keys of the pod's own labels, which extend a label
 * selector. */
static int check_label_keys(const Rules *rules, const PodAffinityTerm *term, const char *place) {
        int r = 0;

        if (!term->label_selector && (term->match_label_keys || term->mismatch_label_keys)) {
                r = error_setf(rules->reterr, EINVAL,
                               "may not be specified when labelSelector is not set");
                return rules_at(rules, r, "%s.%s", place,
                                term->match_label_keys ? "matchLabelKeys" : "mismatchLabelKeys");
        }
        strv_foreach(key, term->mismatch_label_keys)
                if (term->match_label_keys && strv_contains(term->match_label_keys, *key))
                        r = error_setf(rules->reterr, EINVAL,
                                       "exists in both matchLabelKeys and mismatchLabelKeys");
        return r < 0 ? rules_at(rules, r, "%s.mismatchLabelKeys", place) : 0;
}

static int check_pod_term(const Rules *rules, const PodAffinityTerm *term, const char *place) {
        char selector[PLACE_SIZE];
        int r = 0;

        (void) snprintf(selector, sizeof(selector), "%s.labelSelector", place);
        if (term->label_selector)
                r = check_label_selector(rules, term->label_selector, selector);
        (void) snprintf(selector, sizeof(selector), "%s.namespaceSelector", place);
        if (r < 0)
                return r;
        if (term->namespace_selector)
                r = check_label_selector(rules, term->namespace_selector, selector);
        if (r < 0)
                return r;
        return check_label_keys(rules, term, place);
}

static int check_pod_affinity(const Rules *rules, const PodAffinity *affinity, const char *name) {
        char place[PLACE_SIZE];
        int r = 0;

        for (size_t i = 0; i < affinity->required.n && r >= 0; i++) {
                (void) snprintf(place, sizeof(place), "spec.affinity.%s." REQUIRED_KEY "[%zu]",
                                name, i);
                r = check_pod_term(rules, &affinity->required.items[i], place);
        }
        for (size_t i = 0; i < affinity->preferred.n && r >= 0; i++) {
                (void) snprintf(place, sizeof(place),
                                "spec.affinity.%s." PREFERRED_KEY "[%zu].podAffinityTerm", name, i);
                r = check_pod_term(rules, &affinity->preferred.items[i].term, place);
        }
        return r;
}

static int check_pod_spec_affinity(const Rules *rules) {
        const Affinity *affinity = rules->pod->spec.affinity;
        int r = 0;

        if (!affinity)
                return 0;
        if (affinity->node_affinity)
                r = check_node_affinity_terms(rules, affinity->node_affinity);
        if (r < 0)
                return r;
        if (affinity->pod_affinity)
                r = check_pod_affinity(rules, affinity->pod_affinity, "podAffinity");
        if (r < 0 || !affinity->pod_anti_affinity)
                return r;
        return check_pod_affinity(rules, affinity->pod_anti_affinity, "podAntiAffinity");
}

static int check_pod_node_selector(const Rules *rules) {
        const StringMap *selector = &rules->pod->spec.node_selector;
        char key[EXCERPT_SIZE];

        for (size_t i = 0; i < selector->n; i++) {
                int r = check_label_key(selector->items[i].key, rules->reterr);

                if (r < 0)
                        return rules_at(rules, r, "spec.nodeSelector");
                r = check_label_value(selector->items[i].value, rules->reterr);
                if (r < 0)
                        return rules_at(rules, r, "spec.nodeSelector[%s]",
                                        excerpt(key, selector->items[i].key));
        }
        return 0;
}

static int check_tolerations(const Rules *rules) {
        const TolerationList *tolerations = &rules->pod->spec.tolerations;

        for (size_t i = 0; i < tolerations->n; i++) {
                const Toleration *toleration = &tolerations->items[i];
                const char *at = "";
                int r = 0;

                if (!toleration->key && toleration->op != TOLERATION_EXISTS) {
                        at = "operator";
                        r = error_setf(rules->reterr, EINVAL,
                                       "must be Exists when `key` is empty, which means \"match "
                                       "all values and all keys\"");
                } else if (toleration->op == TOLERATION_EXISTS && toleration->value) {
                        at = "value";
                        r = error_setf(rules->reterr, EINVAL,
                                       "must be empty when `operator` is 'Exists'");
                } else if (toleration->toleration_seconds.is_set &&
                           toleration->effect != TAINT_NO_EXECUTE &&
                           toleration->effect != TAINT_EFFECT_OTHER) {
                        at = "effect";
                        r = error_setf(rules->reterr, EINVAL,
                                       "must be 'NoExecute' when `tolerationSeconds` is set");
                }
                if (r < 0)
                        r = rules_keep(rules,
                                       rules_at(rules, r, "spec.tolerations[%zu].%s", i, at));
                if (r < 0)
                        return r;
        }
        return 0;
}

int check_placement(const Rules *rules) {
        int r = rules_keep(rules, check_pod_node_selector(rules));

        if (r < 0)
                return r;
        r = rules_keep(rules, check_pod_spec_affinity(rules));
        if (r < 0)
                return r;
        return check_tolerations(rules);
}
