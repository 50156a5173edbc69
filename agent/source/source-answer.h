/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The line that `mainstay-image source` writes. */

#include "common/error.h"

typedef struct SourceAnswer {
        bool is_new; /* "next" has manifests; else the source has nothing new */
} SourceAnswer;

/* 0 or -EBADMSG. */
int source_answer_parse(const char *text, size_t length, SourceAnswer *ret, Error *reterr);
