/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* JSON of a session: its end, as a v1.Status, and the size of the client's window. */

#include "common/macros.h"

#include <sys/ioctl.h>

/* The v1.Status of a command that ended with this status of waitpid(2), or of a session that failed
 * with 'error' (NULL: it did not), a whole message; in memory that the caller frees, or NULL. */
char *format_session_status(int status, const char *error);

/* Parses {"Width":80,"Height":24}. False if it is not that, or the size is impossible. */
bool parse_terminal_size(const char *data, size_t length, struct winsize *ret);
