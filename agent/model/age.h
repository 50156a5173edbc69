/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Ages as kubectl prints them. Pure. */

#include <stdint.h>

enum {
        DURATION_SIZE = 48
};

/* "45s", "3m20s", "5d3h", like kubectl's AGE. Returns the buffer. */
char *format_duration(char buffer[DURATION_SIZE], int64_t seconds);

/* The time since an RFC 3339 time; "<unknown>" if it is NULL or invalid. Returns the buffer. */
char *format_age(char buffer[DURATION_SIZE], const char *time, uint64_t now_usec);
