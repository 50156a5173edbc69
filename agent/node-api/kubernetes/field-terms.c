/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/kubernetes/field-terms.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/text.h"

static void field_term_done(FieldTerm *term) {
        free(term->path);
        free(term->value);
        *term = (FieldTerm){ 0 };
}

void field_terms_done(FieldTerms *terms) {
        for (size_t i = 0; i < terms->n; i++)
                field_term_done(&terms->items[i]);
        free(terms->items);
        *terms = (FieldTerms){ 0 };
}

/* A backslash precedes commas, equal signs and backslashes in a value. */
static int take_field_value(const char **text, char **ret) {
        cleanup_free char *value = malloc(strlen(*text) + 1);
        size_t n = 0;

        if (!value)
                return -ENOMEM;
        for (; **text && **text != ','; (*text)++) {
                if (**text == '=')
                        return -EINVAL;
                if (**text == '\\') {
                        (*text)++;
                        if (!**text || !strchr("\\,=", **text))
                                return -EINVAL;
                }
                value[n++] = **text;
        }
        value[n] = '\0';
        *ret = TAKE_PTR(value);
        return 0;
}

static int take_field_term(const char **text, FieldTerm *term) {
        size_t length = strcspn(*text, "!=,");

        term->path = strndup(*text, length);
        if (!term->path)
                return -ENOMEM;
        *text += length;
        term->is_negated = strncmp(*text, "!=", 2) == 0;
        if (length == 0 || (!term->is_negated && **text != '='))
                return -EINVAL;
        *text += term->is_negated || strncmp(*text, "==", 2) == 0 ? 2 : 1;
        return take_field_value(text, &term->value);
}

static bool is_selectable_field(const char *path, const char *const *fields) {
        return streq(path, "metadata.name") || streq(path, "metadata.namespace") ||
               (fields && text_is_one_of(path, fields));
}

static int append_field_term(const char **text, FieldTerms *terms) {
        if (!ARRAY_RESERVE(terms->items, terms->n, 1))
                return -ENOMEM;
        terms->items[terms->n] = (FieldTerm){ 0 };
        return take_field_term(text, &terms->items[terms->n++]);
}

int field_terms_parse(const char *text, const char *const *fields, FieldTerms *ret, Error *reterr) {
        cleanup_with(field_terms_done) FieldTerms terms = { 0 };

        for (const char *rest = strna(text); *rest; rest += *rest == ',') {
                int r = append_field_term(&rest, &terms);

                if (r == -EINVAL)
                        return error_setf(reterr, EINVAL,
                                          "invalid field selector: '%s' must be path=value", text);
                if (r < 0)
                        return r;
                if (!is_selectable_field(terms.items[terms.n - 1].path, fields))
                        return error_setf(reterr, EINVAL, "field label not supported: %s",
                                          terms.items[terms.n - 1].path);
        }
        *ret = terms;
        terms = (FieldTerms){ 0 };
        return 0;
}

/* An Event's "source" is the component's name. */
static const json_t *find_selected_field(const json_t *object, const char *path) {
        char name[64];

        if (streq(path, "source"))
                path = "source.component";

        for (;;) {
                size_t length = strcspn(path, ".");

                if (length >= sizeof(name))
                        return NULL;
                memcpy(name, path, length);
                name[length] = '\0';
                object = json_object_get(object, name);
                if (path[length] == '\0')
                        return object;
                path += length + 1;
        }
}

/* An absent flag is false; any other absent field is the empty string. */
static bool has_field_value(const json_t *field, const char *value) {
        if (json_is_true(field))
                return streq(value, "true");
        if (!field || json_is_false(field))
                return streq(value, "false") || (!field && !value[0]);
        return streq(strna(json_string_value(field)), value);
}

bool field_terms_match(const FieldTerms *terms, const json_t *object) {
        for (size_t i = 0; i < terms->n; i++)
                if (has_field_value(find_selected_field(object, terms->items[i].path),
                                    terms->items[i].value) == terms->items[i].is_negated)
                        return false;
        return true;
}
