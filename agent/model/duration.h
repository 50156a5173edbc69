/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Durations as Go writes them and Kubernetes' configuration takes them: "300s", "1m30s", "1.5h". */

#include <stdint.h>

/* 0 or -EINVAL. Negative ones are not durations for us; what is finer than a microsecond is cut. */
int duration_parse(const char *text, uint64_t *ret_usec);

enum {
        DURATION_SIZE = 32
};

/* Whole seconds as Go prints them: "10s", "1m20s", "5m0s", "1h0m0s". Returns the buffer. */
char *duration_format(char buffer[DURATION_SIZE], uint64_t usec);
