/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The JSON messages of a session: its end, as a v1.Status, and the size of the client's
 * terminal. */

#include "common/macros.h"

#include <sys/ioctl.h>

/* The v1.Status of a command that ended with this waitpid(2) status, or of a session that failed
 * with the complete message 'error' (NULL: it did not fail); the caller frees it, or NULL. */
char *format_session_status(int status, const char *error);

/* Parses {"Width":80,"Height":24}. False if it is malformed, or the size is impossible. */
bool parse_terminal_size(const char *data, size_t length, struct winsize *ret);
