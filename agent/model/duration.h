/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Durations in Go's format, as used in Kubernetes' configuration: "300s", "1m30s", "1.5h". */

#include <stdint.h>

/* 0 or -EINVAL. Negative durations are refused; fractions of a microsecond are dropped. */
int duration_parse(const char *text, uint64_t *ret_usec);

enum {
        DURATION_SIZE = 32
};

/* Whole seconds in Go's format: "10s", "1m20s", "5m0s", "1h0m0s". Returns the buffer. */
char *duration_format(char buffer[DURATION_SIZE], uint64_t usec);
