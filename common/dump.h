/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes the lines of `mainstay debug dump`, in which each module prints its state. A line is a
 * key, a colon and a value, or an object with its fields, so that it can be searched with grep; the
 * parts of an object are indented below it. Values of environment variables, tokens and contents of
 * Secrets are never printed. */

#include "common/macros.h"

#include <stdint.h>
#include <stdio.h>
#include <systemd/sd-event.h>

enum {
        DUMP_LINE_MAX = 1024,             /* longer lines are truncated */
        DUMP_BYTES_MAX = 8 * 1024 * 1024, /* nothing is added beyond this */
        DUMP_DURATION_SIZE = 32,
};

/* "<title>:", after an empty line. */
void dump_section(FILE *out, const char *title);

/* One line, indented by two columns for each 'depth'; control characters are replaced. */
void dump_line(FILE *out, unsigned depth, const char *format, ...) printf_like(3, 4);

/* "8.312s", "5m3s", "2h5m", "3d4h". Returns the buffer. */
char *dump_format_duration(char buffer[DUMP_DURATION_SIZE], uint64_t usec);

/* "in 8.312s" for a future boot time, "now" for a past one. Returns the buffer. */
char *dump_format_due(char buffer[DUMP_DURATION_SIZE], uint64_t boottime_usec);

/* "timer: <what> in 8.312s"; nothing if the source is NULL or not armed. */
void dump_timer(FILE *out, unsigned depth, const char *what, sd_event_source *timer);

/* Whether it was truncated. */
bool dump_is_full(FILE *out);
