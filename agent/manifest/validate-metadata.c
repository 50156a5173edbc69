/* SPDX-License-Identifier: Apache-2.0 */

/* Kubernetes' rules for the metadata of objects of all kinds. */

#include "agent/manifest/validate-pod.h"
#include "agent/model/names.h"
#include "agent/model/own-values.h"
#include "agent/model/pod-order.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ANNOTATIONS_BYTES_MAX (256 * KIB)

static int check_label_map(const Rules *rules, const StringMap *labels) {
        char key[EXCERPT_SIZE];

        for (size_t i = 0; i < labels->n; i++) {
                int r = check_label_key(labels->items[i].key, rules->reterr);

                if (r < 0)
                        return rules_at(rules, r, "metadata.labels");
                r = check_label_value(labels->items[i].value, rules->reterr);
                if (r < 0)
                        return rules_at(rules, r, "metadata.labels[%s]",
                                        excerpt(key, labels->items[i].key));
        }
        return 0;
}

static int check_annotations(const Rules *rules, const StringMap *annotations) {
        size_t size = 0;
        int r;

        for (size_t i = 0; i < annotations->n; i++) {
                r = check_annotation_key(annotations->items[i].key, rules->reterr);
                if (r < 0)
                        return rules_at(rules, r, "metadata.annotations");
                size += strlen(annotations->items[i].key) + strlen(annotations->items[i].value);
        }
        if (size <= ANNOTATIONS_BYTES_MAX)
                return 0;
        r = error_setf(rules->reterr, EINVAL, "must be at most %zu bytes together, not %zu",
                       ANNOTATIONS_BYTES_MAX, size);
        return rules_at(rules, r, "metadata.annotations");
}

/* Mainstay's own annotation, which Kubernetes does not validate. */
static int check_own_annotations(const Rules *rules, const ObjectMeta *metadata) {
        static const OwnKey keys[] = { OWN_KEY_BOOTSTRAP, OWN_KEY_CRITICAL, OWN_KEY_JOURNAL_LOGS };
        char excerpted[EXCERPT_SIZE];

        for (size_t i = 0; i < N_ELEMENTS(keys); i++) {
                const char *value = own_value_as_written(metadata, keys[i]);

                if (value && !streq(value, "true") && !streq(value, "false"))
                        return rules_at(rules,
                                        error_setf(rules->reterr, EINVAL,
                                                   "must be \"true\" or \"false\", not '%s'",
                                                   excerpt(excerpted, value)),
                                        "metadata.annotations[%s]", own_key_name(keys[i]));
        }
        return 0;
}

int check_metadata(const Rules *rules, const ObjectMeta *metadata) {
        int r = check_label_map(rules, &metadata->labels);

        if (r < 0)
                return r;
        r = check_annotations(rules, &metadata->annotations);
        if (r < 0)
                return r;
        return rules_are_of_api(rules) ? 0 : check_own_annotations(rules, metadata);
}

int check_progress_deadline(const Rules *rules, const ObjectMeta *metadata) {
        const char *text = own_value_as_written(metadata, OWN_KEY_PROGRESS_DEADLINE);
        char excerpted[EXCERPT_SIZE];
        size_t n = text ? strspn(text, "0123456789") : 0;
        int r;

        if (!text || (n > 0 && n < 10 && !text[n] && strtol(text, NULL, 10) > 0))
                return 0;
        r = error_setf(rules->reterr, EINVAL, "must be a number of seconds above 0, not '%s'",
                       excerpt(excerpted, text));
        return rules_at(rules, r, "metadata.annotations[%s]",
                        own_key_name(OWN_KEY_PROGRESS_DEADLINE));
}

int check_pod_order(const Rules *rules) {
        int r = rules_are_of_api(rules) ? 0 : pod_after_check(rules->pod, rules->reterr);

        return r < 0 ? rules_at(rules, r, "metadata.annotations[%s]", own_key_name(OWN_KEY_AFTER))
                     : 0;
}
