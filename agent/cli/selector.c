/* SPDX-License-Identifier: Apache-2.0 */
/* Label selectors of the command line (-l). */

#include "agent/cli/pod-selection.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/json-text.h"

static void label_requirement_done(LabelRequirement *requirement) {
        free(requirement->key);
        free(requirement->value);
}

void selector_done(Selector *selector) {
        for (size_t i = 0; i < selector->n; i++)
                label_requirement_done(&selector->items[i]);
        free(selector->items);
        *selector = (Selector){ 0 };
}

static char *copy_trimmed(const char *text, size_t length) {
        while (length > 0 && *text == ' ') {
                text++;
                length--;
        }
        while (length > 0 && text[length - 1] == ' ')
                length--;
        return strndup(text, length);
}

/* Parses one requirement of 'length' bytes. */
static int parse_label_requirement(const char *text, size_t length, LabelRequirement *ret,
                                   Error *reterr) {
        cleanup_with(label_requirement_done) LabelRequirement requirement = { 0 };
        const char *equals = memchr(text, '=', length), *key_end = equals ? equals : text + length;
        const char *key = text + strspn(text, " "), *value = equals ? equals + 1 : NULL;

        if (equals && equals > text && equals[-1] == '!') {
                requirement.is_negated = true;
                key_end--;
        } else if (equals && *value == '=')
                value++;
        else if (!equals && *key == '!' && key < key_end) {
                requirement.is_negated = true;
                key++;
        }
        requirement.key = copy_trimmed(key, (size_t) (MAX(key_end, key) - key));
        if (value)
                requirement.value = copy_trimmed(value, (size_t) (text + length - value));
        if (!requirement.key || (value && !requirement.value))
                return -ENOMEM;
        if (requirement.key[0] == '\0' || strpbrk(requirement.key, " !()") ||
            (value && strpbrk(requirement.value, " =!()")))
                return error_setf(reterr, EINVAL,
                                  "selector '%.*s' must be key=value, key!=value, key or !key",
                                  (int) length, text);
        *ret = requirement;
        requirement = (LabelRequirement){ 0 };
        return 0;
}

static int append_label_requirement(Selector *selector, const char *text, size_t length,
                                    Error *reterr) {
        int r;

        if (!ARRAY_RESERVE(selector->items, selector->n, 1))
                return -ENOMEM;
        r = parse_label_requirement(text, length, &selector->items[selector->n], reterr);
        if (r < 0)
                return r;
        selector->n++;
        return 0;
}

int selector_parse(const char *text, Selector *ret, Error *reterr) {
        cleanup_with(selector_done) Selector selector = { 0 };

        while (text && *text) {
                size_t length = strcspn(text, ",");
                int r = append_label_requirement(&selector, text, length, reterr);

                if (r < 0)
                        return r;
                text += length + (text[length] == ',');
        }
        *ret = selector;
        selector = (Selector){ 0 };
        return 0;
}

/* As in Kubernetes, an absent label is not equal to any value. */
static bool is_label_requirement_met(const LabelRequirement *requirement, const json_t *labels) {
        const char *value = json_text(labels, requirement->key);
        bool holds = value && (!requirement->value || streq(value, requirement->value));

        return holds != requirement->is_negated;
}

bool selector_matches(const Selector *selector, const json_t *labels) {
        for (size_t i = 0; i < selector->n; i++)
                if (!is_label_requirement_met(&selector->items[i], labels))
                        return false;
        return true;
}
