/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/match.h"

#include "agent/model/names.h"
#include "common/cleanup.h"
#include "common/strv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool parse_whole_number(const char *text, int64_t *ret) {
        char *end;

        errno = 0;
        *ret = strtoll(text, &end, 10);
        return errno == 0 && end != text && !*end;
}

static bool compare_numbers(const char *value, char *const *other, bool greater) {
        int64_t left, right;

        if (!value || strv_length(other) != 1 || !parse_whole_number(value, &left) ||
            !parse_whole_number(other[0], &right))
                return false;
        return greater ? left > right : left < right;
}

bool requirement_matches(const SelectorRequirement *requirement, const char *value) {
        switch (requirement->op) {
        case SELECTOR_IN:
                return value && strv_contains(requirement->values, value);
        case SELECTOR_NOT_IN:
                return !value || !strv_contains(requirement->values, value);
        case SELECTOR_EXISTS:
                return value;
        case SELECTOR_DOES_NOT_EXIST:
                return !value;
        case SELECTOR_GT:
                return compare_numbers(value, requirement->values, /* greater= */ true);
        case SELECTOR_LT:
                return compare_numbers(value, requirement->values, /* greater= */ false);
        case SELECTOR_OPERATOR_UNSET:
        case SELECTOR_OTHER:
        case N_SELECTOR_OPERATORS:
                break;
        }
        return false;
}

const SelectorRequirement *requirements_find_miss(const SelectorRequirements *requirements,
                                                  const StringMap *labels) {
        for (size_t i = 0; i < requirements->n; i++) {
                const SelectorRequirement *requirement = &requirements->items[i];

                if (!requirement_matches(requirement, string_map_get(labels, requirement->key)))
                        return requirement;
        }
        return NULL;
}

bool label_selector_matches(const LabelSelector *selector, const StringMap *labels) {
        if (!selector)
                return false;
        for (size_t i = 0; i < selector->match_labels.n; i++) {
                const KeyValue *pair = &selector->match_labels.items[i];

                if (!streq_ptr(string_map_get(labels, pair->key), pair->value))
                        return false;
        }
        return !requirements_find_miss(&selector->match_expressions, labels);
}

static bool node_selector_term_matches(const NodeSelectorTerm *term, const NodeLabelsTaints *node) {
        for (size_t i = 0; i < term->match_fields.n; i++)
                if (!requirement_matches(&term->match_fields.items[i], node->name))
                        return false;
        if (term->match_fields.n + term->match_expressions.n == 0)
                return false;
        return !requirements_find_miss(&term->match_expressions, &node->labels);
}

bool node_selector_matches(const NodeSelector *selector, const NodeLabelsTaints *node) {
        for (size_t i = 0; i < selector->terms.n; i++)
                if (node_selector_term_matches(&selector->terms.items[i], node))
                        return true;
        return false;
}

const KeyValue *node_labels_find_miss(const StringMap *wanted, const NodeLabelsTaints *node) {
        for (size_t i = 0; i < wanted->n; i++) {
                const KeyValue *pair = &wanted->items[i];

                if (!streq_ptr(string_map_get(&node->labels, pair->key), pair->value))
                        return pair;
        }
        return NULL;
}

bool pod_matches_node(const PodSpec *spec, const NodeLabelsTaints *node) {
        const NodeAffinity *affinity = spec->affinity ? spec->affinity->node_affinity : NULL;

        if (node_labels_find_miss(&spec->node_selector, node))
                return false;
        return !affinity || !affinity->required || node_selector_matches(affinity->required, node);
}

bool toleration_tolerates(const Toleration *toleration, const Taint *taint) {
        if (toleration->effect != TAINT_EFFECT_UNSET && toleration->effect != taint->effect)
                return false;
        if (toleration->key && !streq(toleration->key, taint->key))
                return false;
        if (toleration->op == TOLERATION_EXISTS)
                return true;
        if (toleration->op == TOLERATION_OTHER)
                return false;
        return toleration->key && streq(strna(toleration->value), strna(taint->value));
}

const char *requirement_format(const SelectorRequirement *requirement,
                               char buffer[REQUIREMENT_SIZE]) {
        char key[EXCERPT_SIZE], value[EXCERPT_SIZE];
        size_t n;

        n = (size_t) snprintf(buffer, REQUIREMENT_SIZE, "%s %s", excerpt(key, requirement->key),
                              strna(selector_operator_names[requirement->op]));
        if (!requirement->values)
                return buffer;
        strv_foreach(item, requirement->values) {
                if (n >= REQUIREMENT_SIZE - EXCERPT_SIZE)
                        break;
                n += (size_t) snprintf(buffer + n, REQUIREMENT_SIZE - n, "%s%s",
                                       item == requirement->values ? " [" : ", ",
                                       excerpt(value, *item));
        }
        (void) snprintf(buffer + n, REQUIREMENT_SIZE - n, "]");
        return buffer;
}

const char *taint_format(const Taint *taint, char buffer[TAINT_SIZE]) {
        (void) snprintf(buffer, TAINT_SIZE, "%s%s%s:%s", taint->key, taint->value ? "=" : "",
                        strna(taint->value), strna(taint_effect_names[taint->effect]));
        return buffer;
}

static TaintEffect find_taint_effect(const char *name) {
        for (TaintEffect i = TAINT_NO_SCHEDULE; i < N_TAINT_EFFECTS; i++)
                if (streq(taint_effect_names[i], name))
                        return i;
        return TAINT_EFFECT_UNSET;
}

static int split_taint(const char *text, const char *colon, Taint *ret, Error *reterr) {
        size_t n_key = strcspn(text, "=:");
        const char *value = text + n_key + 1;
        int r;

        ret->key = strndup(text, n_key);
        if (!ret->key)
                return -ENOMEM;
        if (text + n_key < colon && colon > value) {
                ret->value = strndup(value, (size_t) (colon - value));
                if (!ret->value)
                        return -ENOMEM;
        }
        r = check_label_key(ret->key, reterr);
        if (r < 0 || !ret->value)
                return r;
        return check_label_value(ret->value, reterr);
}

int taint_parse(const char *text, Taint *ret, Error *reterr) {
        const char *colon = strrchr(text, ':');

        if (!colon)
                return error_setf(reterr, EINVAL, "must be key=value:effect or key:effect");
        ret->effect = find_taint_effect(colon + 1);
        if (ret->effect == TAINT_EFFECT_UNSET)
                return error_setf(reterr, EINVAL,
                                  "must have the effect NoSchedule, PreferNoSchedule or NoExecute "
                                  "behind the ':'");
        return split_taint(text, colon, ret, reterr);
}
