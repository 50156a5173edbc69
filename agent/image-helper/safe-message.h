/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sentences about what strangers wrote, which quote them, made fit for a log, a terminal and JSON.
 */

#include "common/error.h"

enum {
        SAFE_MESSAGE_LENGTH_MAX = 1024
};

/* The sentence that error_message() gives, as one line of UTF-8: what is neither, or moves a
 * terminal's cursor, is a '?', and of one that is too long the middle is left out. Memory that the
 * caller frees, or NULL. */
char *format_safe_message(const Error *error, int r);
