/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An Error is the message for the user that accompanies a negative errno.
 *
 * The caller owns it, on its stack, and may pass NULL if it does not need the message. The
 * innermost function states the problem; each layer above adds the place once. Helpers in common/
 * that return only an errno get their message from strerror() at the first error_prefixf(). */

#include "common/macros.h"

#include <stdarg.h>

typedef struct Error {
        char *message; /* NULL while there is none */
} Error;

#define ERROR_NULL    ((Error){ 0 })
#define cleanup_error cleanup_with(error_done)

/* Sets the message. 'code' is a positive errno; returns -code. An existing message is kept. */
int error_setf(Error *reterr, int code, const char *format, ...) printf_like(3, 4);

/* Puts "<where>: " before the message, or creates one from strerror(-r). Returns r. */
int error_prefixf(Error *reterr, int r, const char *format, ...) printf_like(3, 4);

#ifdef __clang_analyzer__
/* Tells the static analyzer, which sees one file at a time, that a failure remains a failure. */
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

/* The message for 'r', or strerror(-r). Valid as long as the Error exists. */
const char *error_message(const Error *error, int r);

/* Moves the message from 'from' to 'to', freeing the previous one. */
void error_move(Error *to, Error *from);

void error_done(Error *error);

/* Formats a message; the caller frees it. NULL: out of memory. */
char *format_message(const char *format, va_list ap) __attribute__((format(printf, 1, 0)));
