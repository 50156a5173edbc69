/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The output of `mainstay-image source`: a line on standard output, and a file next to the
 * manifests. */

#include "common/error.h"

#include <stdint.h>

typedef struct SourceAnswer {
        bool is_new; /* "next" contains manifests; otherwise the source has nothing new */
} SourceAnswer;

/* 0 or -EBADMSG. */
int source_answer_parse(const char *text, size_t length, SourceAnswer *ret, Error *reterr);

/* source.json: the manifests in use. */
typedef struct SourceInUse {
        bool is_there;
        char *summary;  /* "index 7 of the fleet shops, …"; NULL: there is none */
        int64_t number; /* number of the index; 0: not an index */
        char *sha256;   /* digest and fleet of the index; NULL: none */
        char *fleet;
        uint64_t deadline_usec; /* its progress deadline; 0: none */
        uint64_t fetched;       /* realtime; 0: unknown */
} SourceInUse;

/* The content of a damaged file is ignored. */
void source_in_use_parse(const char *text, size_t length, SourceInUse *ret);
void source_in_use_done(SourceInUse *in_use);
