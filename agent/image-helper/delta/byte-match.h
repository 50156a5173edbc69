/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds the common parts of two versions of a file, like rsync: a rolling hash finds blocks of the
 * old version in the new one, and each match is extended as far as possible. Pure. */

#include "common/macros.h"

#include <stddef.h>
#include <stdint.h>

/* A part of the new file, in order and without gaps. */
typedef enum ByteMatchKind {
        BYTE_MATCH_NEW,     /* not in the old file */
        BYTE_MATCH_SAME,    /* equals the old file from 'position' on */
        BYTE_MATCH_SIMILAR, /* between two matches that are equally far apart in both files */
} ByteMatchKind;

typedef int (*byte_match_t)(ByteMatchKind kind, uint64_t start, uint64_t size, uint64_t position,
                            void *userdata);

/* Calls 'each' for all parts, which together make up the new file. 0, -ENOMEM, or the return value
 * of 'each'. */
int byte_match(const uint8_t *old, uint64_t n_old, const uint8_t *new, uint64_t n_new,
               byte_match_t each, void *userdata);
