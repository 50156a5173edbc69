/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes messages that quote untrusted bytes safe for a log, a terminal and JSON. */

#include "common/error.h"

enum {
        SAFE_MESSAGE_LENGTH_MAX = 1024
};

/* The message of error_message(), as one line of UTF-8: invalid bytes and control characters become
 * '?', and the middle of a long message is omitted. The caller frees it; NULL: out of memory. */
char *format_safe_message(const Error *error, int r);
