/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An Error is the sentence that travels beside a negative errno, for the person who must act on it.
 *
 * The caller owns it, on its stack, and may pass NULL where nobody will read it. The innermost
 * function says what is wrong; each layer on the way up adds where, once. Helpers in common/ that
 * speak errno only get their sentence from strerror() at the first error_prefixf(). */

#include "common/macros.h"

typedef struct Error {
        char *message; /* NULL while nothing has been said */
} Error;

#define ERROR_NULL    ((Error){ 0 })
#define cleanup_error cleanup_with(error_done)

/* Says what is wrong. 'code' is a positive errno; returns -code. A sentence that is already there
 * stays. */
int error_setf(Error *reterr, int code, const char *format, ...) printf_like(3, 4);

/* Puts "<where>: " before the sentence, or makes one from strerror(-r) where there is none. Returns
 * r. */
int error_prefixf(Error *reterr, int r, const char *format, ...) printf_like(3, 4);

#ifdef __clang_analyzer__
/* The analyzer looks into one file at a time: here it learns that a failure stays one. */
#define error_setf(reterr, code, ...)                           \
        ({                                                      \
                int code_ = (code);                             \
                error_setf(reterr, code_, __VA_ARGS__), -code_; \
        })
#define error_prefixf(reterr, r, ...)                       \
        ({                                                  \
                int r_ = (r);                               \
                error_prefixf(reterr, r_, __VA_ARGS__), r_; \
        })
#endif

/* The sentence for 'r', or strerror(-r). Valid as long as the Error is. */
const char *error_message(const Error *error, int r);

/* Moves the sentence out of 'from' into 'to' (freeing what 'to' had). */
void error_move(Error *to, Error *from);

void error_done(Error *error);
