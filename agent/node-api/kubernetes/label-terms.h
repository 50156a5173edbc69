/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The label selector of a list: "app=web,tier in (front,back),!test". Pure. */

#include "common/error.h"

#include <jansson.h>
#include <stdint.h>

typedef enum LabelOperator {
        LABEL_EXISTS,
        LABEL_ABSENT,
        LABEL_IN,
        LABEL_NOT_IN, /* an absent label is in no set */
        LABEL_GREATER,
        LABEL_LESS,
} LabelOperator;

typedef struct LabelTerm {
        char *key;
        LabelOperator operator;
        char **values;  /* for LABEL_IN and LABEL_NOT_IN */
        int64_t number; /* for LABEL_GREATER and LABEL_LESS */
} LabelTerm;

typedef struct LabelTerms {
        LabelTerm *items;
        size_t n;
} LabelTerms;

/* NULL and "" match everything. 0; -EINVAL with a message, -ENOMEM. */
int label_terms_parse(const char *text, LabelTerms *ret, Error *reterr);
void label_terms_done(LabelTerms *terms);

/* 'labels' is an object, or NULL if there are none. */
bool label_terms_match(const LabelTerms *terms, const json_t *labels);
