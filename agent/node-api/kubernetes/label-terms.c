/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/kubernetes/label-terms.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/strv.h"

static const char word_end[] = " \t!=,()<>";

static void label_term_done(LabelTerm *term) {
        free(term->key);
        strv_free(term->values);
        *term = (LabelTerm){ 0 };
}

void label_terms_done(LabelTerms *terms) {
        for (size_t i = 0; i < terms->n; i++)
                label_term_done(&terms->items[i]);
        free(terms->items);
        *terms = (LabelTerms){ 0 };
}

/* ---- words ---- */

static void skip_blanks(const char **text) {
        *text += strspn(*text, " \t");
}

static bool take_sign(const char **text, const char *sign) {
        skip_blanks(text);
        if (strncmp(*text, sign, strlen(sign)) != 0)
                return false;
        *text += strlen(sign);
        return true;
}

/* A word, possibly empty. NULL: out of memory. */
static char *take_label_word(const char **text) {
        const char *start;

        skip_blanks(text);
        start = *text;
        *text += strcspn(start, word_end);
        return strndup(start, (size_t) (*text - start));
}

/* ---- a term ---- */

static int take_label_value(const char **text, LabelTerm *term) {
        cleanup_free char *word = take_label_word(text);

        return word ? strv_append(&term->values, word) : -ENOMEM;
}

/* "(a, b)" */
static int take_label_set(const char **text, LabelTerm *term) {
        int r;

        if (!take_sign(text, "("))
                return -EINVAL;
        do {
                r = take_label_value(text, term);
                if (r < 0)
                        return r;
        } while (take_sign(text, ","));
        return take_sign(text, ")") ? 0 : -EINVAL;
}

static int take_label_number(const char **text, LabelTerm *term) {
        cleanup_free char *word = take_label_word(text);
        char *end;

        if (!word)
                return -ENOMEM;
        errno = 0;
        term->number = strtoll(word, &end, 10);
        return errno != 0 || end == word || *end != '\0' ? -EINVAL : 0;
}

/* "in (…)" or "notin (…)" */
static int take_label_set_operator(const char **text, LabelTerm *term) {
        cleanup_free char *word = take_label_word(text);

        if (!word)
                return -ENOMEM;
        if (!streq(word, "in") && !streq(word, "notin"))
                return -EINVAL;
        term->operator= streq(word, "in") ? LABEL_IN : LABEL_NOT_IN;
        return take_label_set(text, term);
}

/* The text after the key. */
static int take_label_operator(const char **text, LabelTerm *term) {
        static const struct {
                const char *sign;
                LabelOperator operator;
                int (*take)(const char **text, LabelTerm *term);
        } signs[] = { { "==", LABEL_IN, take_label_value },
                      { "=", LABEL_IN, take_label_value },
                      { "!=", LABEL_NOT_IN, take_label_value },
                      { ">", LABEL_GREATER, take_label_number },
                      { "<", LABEL_LESS, take_label_number } };

        skip_blanks(text);
        term->operator= LABEL_EXISTS;
        if (**text == '\0' || **text == ',')
                return 0;
        for (size_t i = 0; i < N_ELEMENTS(signs); i++) {
                if (!take_sign(text, signs[i].sign))
                        continue;
                term->operator= signs[i].operator;
                return signs[i].take(text, term);
        }
        return take_label_set_operator(text, term);
}

static int take_label_term(const char **text, LabelTerm *term) {
        bool is_absent = take_sign(text, "!");

        term->key = take_label_word(text);
        if (!term->key)
                return -ENOMEM;
        if (!term->key[0])
                return -EINVAL;
        if (!is_absent)
                return take_label_operator(text, term);
        term->operator= LABEL_ABSENT;
        return 0;
}

static int append_label_term(const char **text, LabelTerms *terms) {
        if (!ARRAY_RESERVE(terms->items, terms->n, 1))
                return -ENOMEM;
        terms->items[terms->n] = (LabelTerm){ 0 };
        return take_label_term(text, &terms->items[terms->n++]);
}

int label_terms_parse(const char *text, LabelTerms *ret, Error *reterr) {
        cleanup_with(label_terms_done) LabelTerms terms = { 0 };
        const char *rest = strna(text);
        int r = 0;

        skip_blanks(&rest);
        if (*rest == '\0') {
                *ret = (LabelTerms){ 0 };
                return 0;
        }
        do {
                r = append_label_term(&rest, &terms);
        } while (r >= 0 && take_sign(&rest, ","));
        skip_blanks(&rest);
        if (r >= 0 && *rest != '\0')
                r = -EINVAL;
        if (r == -EINVAL)
                return error_setf(reterr, EINVAL,
                                  "unable to parse requirement: '%s' is not a label selector",
                                  text);
        if (r < 0)
                return r;
        *ret = terms;
        terms = (LabelTerms){ 0 };
        return 0;
}

/* ---- matching ---- */

static bool compare_label_number(const LabelTerm *term, const char *value) {
        char *end;
        long long number;

        errno = 0;
        number = strtoll(value, &end, 10);
        if (errno != 0 || end == value || *end != '\0')
                return false;
        return term->operator== LABEL_GREATER ? number > term->number : number<term->number;
}

static bool label_term_matches(const LabelTerm *term, const char *value) {
        switch (term->operator) {
        case LABEL_EXISTS:
                return value;
        case LABEL_ABSENT:
                return !value;
        case LABEL_IN:
                return value && strv_contains(term->values, value);
        case LABEL_NOT_IN:
                return !value || !strv_contains(term->values, value);
        case LABEL_GREATER:
        case LABEL_LESS:
                return value && compare_label_number(term, value);
        }
        return false;
}

bool label_terms_match(const LabelTerms *terms, const json_t *labels) {
        for (size_t i = 0; i < terms->n; i++)
                if (!label_term_matches(&terms->items[i], json_text(labels, terms->items[i].key)))
                        return false;
        return true;
}
