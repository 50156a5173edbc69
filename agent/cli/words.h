/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Times and texts in kubectl's formats. Pure. */

#include "agent/model/age.h"
#include "common/macros.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/* A duration as Go writes it ("1h30m", "1.5s", "300ms"), in microseconds. 0 or -EINVAL. */
int parse_duration(const char *text, uint64_t *ret_usec);

/* "Fri, 02 Jan 2026 03:04:05 +0000" in the local time zone. Returns the buffer, or the text itself
 * if it is not a timestamp. */
enum {
        LONG_TIME_SIZE = 64
};
const char *format_long_time(char buffer[LONG_TIME_SIZE], const char *time);

/* Writes a text that may come from a container on one line, with control characters made visible.
 */
void write_quoted(const char *text, FILE *out);

/* Prints a line with texts from files, containers or the agent, with control characters made
 * visible. */
void print_line(FILE *out, const char *format, ...) printf_like(2, 3);
