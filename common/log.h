/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One line to standard error: with the journal's "<N>" where the journal reads it, else with the
 * program's name. Sentences begin with a capital and have no period; user strings stand between
 * 'ticks'. */

#include "common/macros.h"

void log_error(const char *format, ...) printf_like(1, 2);
void log_warning(const char *format, ...) printf_like(1, 2);
void log_info(const char *format, ...) printf_like(1, 2);
void log_debug(const char *format, ...)
        printf_like(1, 2); /* only with MAINSTAY_DEBUG in the environment */

/* "<sentence>: <strerror>"; returns r, so that a failure is logged and returned in one line. */
int log_error_errno(int r, const char *format, ...) printf_like(2, 3);
int log_warning_errno(int r, const char *format, ...) printf_like(2, 3);
