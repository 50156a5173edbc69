/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a session says in JSON: its end, as a v1.Status, and the size of the client's window. */

#include "common/macros.h"

#include <sys/ioctl.h>

/* The v1.Status of a command that ended with this status of waitpid(2), or that could not be run
 * for the reason in 'trouble'; in memory that the caller frees, or NULL. */
char *format_session_status(int status, const char *start_error);

/* {"Width":80,"Height":24}. False for what is none, or no window that can be. */
bool parse_terminal_size(const char *data, size_t length, struct winsize *ret);
