/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/cdi.h"

#include "agent/model/names.h"
#include "common/cleanup.h"
#include "common/strv.h"

#include <errno.h>
#include <string.h>

static bool is_letter(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_letter_or_digit(char c) {
        return is_letter(c) || (c >= '0' && c <= '9');
}

/* Letters, digits and 'others'; the last one is a letter or digit. */
static bool is_cdi_word(const char *word, size_t n, const char *others) {
        if (n == 0 || !is_letter_or_digit(word[0]) || !is_letter_or_digit(word[n - 1]))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!is_letter_or_digit(word[i]) && !strchr(others, word[i]))
                        return false;
        return true;
}

static bool is_cdi_kind(const char *kind, size_t n) {
        const char *slash = memchr(kind, '/', n);
        size_t n_vendor = slash ? (size_t) (slash - kind) : 0;

        return slash && is_letter(kind[0]) && is_letter(slash[1]) &&
               is_cdi_word(kind, n_vendor, "_-.") &&
               is_cdi_word(slash + 1, n - n_vendor - 1, "_-.");
}

static bool is_cdi_device_name(const char *name) {
        return is_cdi_word(name, strlen(name), "_-.:");
}

int check_cdi_kind(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];

        if (is_cdi_kind(value, strlen(value)))
                return 0;
        return error_setf(reterr, EINVAL,
                          "must be a vendor and a class, vendor.com/class, not '%s'",
                          excerpt(text, value));
}

int check_cdi_device_name(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];

        if (is_cdi_device_name(value))
                return 0;
        return error_setf(reterr, EINVAL,
                          "must be letters, digits, '_', '-', '.' and ':', with a letter or digit "
                          "at both ends, not '%s'",
                          excerpt(text, value));
}

int check_cdi_qualified_name(const char *value, Error *reterr) {
        const char *equals = strchr(value, '=');
        char text[EXCERPT_SIZE];

        if (equals && is_cdi_kind(value, (size_t) (equals - value)) &&
            is_cdi_device_name(equals + 1))
                return 0;
        return error_setf(reterr, EINVAL,
                          "must be the name of a CDI device, vendor.com/class=name, not '%s'",
                          excerpt(text, value));
}

bool is_cdi_annotation(const char *key) {
        static const char prefix[] = CDI_ANNOTATION_PREFIX;

        return strncmp(key, prefix, strlen(prefix)) == 0;
}

bool is_cdi_resource(const char *name) {
        return strchr(name, '=') != NULL;
}

const KeyValue *pod_cdi_annotation(const Pod *pod) {
        const StringMap *annotations = &pod->metadata.annotations;

        for (size_t i = 0; i < annotations->n; i++)
                if (is_cdi_annotation(annotations->items[i].key))
                        return &annotations->items[i];
        return NULL;
}

/* Annotations are sorted by their keys. */
static const KeyValue *next_cdi_annotation(const StringMap *annotations, size_t *i) {
        while (*i < annotations->n) {
                const KeyValue *annotation = &annotations->items[(*i)++];

                if (is_cdi_annotation(annotation->key))
                        return annotation;
        }
        return NULL;
}

bool pod_cdi_annotations_equal(const Pod *a, const Pod *b) {
        size_t i = 0, j = 0;

        for (;;) {
                const KeyValue *left = next_cdi_annotation(&a->metadata.annotations, &i);
                const KeyValue *right = next_cdi_annotation(&b->metadata.annotations, &j);

                if (!left || !right)
                        return left == right;
                if (!streq(left->key, right->key) || !streq(left->value, right->value))
                        return false;
        }
}

int cdi_annotation_split(const char *value, char ***ret, Error *reterr) {
        cleanup_strv char **names = NULL;

        for (const char *p = value;; p++) {
                size_t n = strcspn(p, ",");
                cleanup_free char *name = strndup(p, n);
                int r = name ? check_cdi_qualified_name(name, reterr) : -ENOMEM;

                if (r >= 0)
                        r = strv_append(&names, name);
                if (r < 0)
                        return r;
                p += n;
                if (!*p)
                        break;
        }
        *ret = TAKE_PTR(names);
        return 0;
}

static int append_once(char ***names, const char *name) {
        return strv_contains(*names, name) ? 0 : strv_append(names, name);
}

static int append_annotated(char ***names, const KeyValue *annotation, Error *reterr) {
        cleanup_strv char **more = NULL;
        char text[EXCERPT_SIZE];
        int r = cdi_annotation_split(annotation->value, &more, reterr);

        if (r < 0)
                return error_prefixf(reterr, r, "annotation %s", excerpt(text, annotation->key));
        strv_foreach(name, more) {
                r = append_once(names, *name);
                if (r < 0)
                        return r;
        }
        return 0;
}

int container_cdi_names(const Pod *pod, const Container *container, char ***ret, Error *reterr) {
        const StringMap *annotations = &pod->metadata.annotations;
        cleanup_strv char **names = NULL;
        const KeyValue *annotation;
        size_t i = 0;

        while ((annotation = next_cdi_annotation(annotations, &i))) {
                int r = append_annotated(&names, annotation, reterr);

                if (r < 0)
                        return r;
        }
        for (i = 0; i < container->resources.limits.extended.n; i++) {
                const ExtendedResource *limit = &container->resources.limits.extended.items[i];

                if (is_cdi_resource(limit->name) && limit->amount.value > 0 &&
                    append_once(&names, limit->name) < 0)
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(names);
        return 0;
}
