/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The field selector of a list: "metadata.name=web,status.phase!=Running". Pure. */

#include "common/error.h"

#include <jansson.h>

typedef struct FieldTerm {
        char *path, *value;
        bool is_negated;
} FieldTerm;

typedef struct FieldTerms {
        FieldTerm *items;
        size_t n;
} FieldTerms;

/* 'fields' are the field paths by which this kind of object can be selected, in addition to
 * metadata.name and metadata.namespace, terminated by NULL. NULL and "" match everything. 0;
 * -EINVAL with a message, -ENOMEM. */
int field_terms_parse(const char *text, const char *const *fields, FieldTerms *ret, Error *reterr);
void field_terms_done(FieldTerms *terms);

bool field_terms_match(const FieldTerms *terms, const json_t *object);
