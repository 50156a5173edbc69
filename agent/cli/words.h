/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Times and texts as kubectl writes them. Pure. */

#include "common/macros.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

enum {
        DURATION_SIZE = 48
};

/* "45s", "3m20s", "5d3h", as kubectl's AGE. Returns the buffer. */
char *format_duration(char buffer[DURATION_SIZE], int64_t seconds);

/* The time since an RFC 3339 time; "<unknown>" where it is NULL or invalid. Returns the buffer. */
char *format_age(char buffer[DURATION_SIZE], const char *time, uint64_t now_usec);

/* A duration as Go writes it ("1h30m", "1.5s", "300ms"), in microseconds. 0 or -EINVAL. */
int parse_duration(const char *text, uint64_t *ret_usec);

/* "Fri, 02 Jan 2026 03:04:05 +0000" in the local time zone. Returns the buffer, or the text itself
 * where it is not a time. */
enum {
        LONG_TIME_SIZE = 64
};
const char *format_long_time(char buffer[LONG_TIME_SIZE], const char *time);

/* A nested member: json_at(pod, "status", "phase"). NULL where one is missing. */
#define json_at(object, ...) json_walk(object, (const char *const[]){ __VA_ARGS__, NULL })
json_t *json_walk(const json_t *object, const char *const *keys);

/* The string there, or NULL. */
#define json_text(object, ...) json_string_value(json_at(object, __VA_ARGS__))

/* Writes a text that may come from a container, on one line, with control characters made visible.
 */
void write_quoted(const char *text, FILE *out);
