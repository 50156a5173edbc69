/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A query for the logs of the node's services (kubelet: NodeLogQuery). */

#include <stdbool.h>
#include <stdint.h>

enum {
        LOG_QUERY_UNITS_MAX = 4,
        LOG_QUERY_UNIT_LENGTH_MAX = 256,
        LOG_QUERY_PATTERN_LENGTH_MAX = 1024,
        LOG_QUERY_TAIL_LINES_MAX = 100000,
};

typedef struct SystemLogQuery {
        const char *units[LOG_QUERY_UNITS_MAX];
        unsigned n_units;
        int64_t since_sec, until_sec; /* since the epoch; 0: no limit */
        int64_t tail_lines;           /* -1: all */
        const char *pattern;          /* NULL: all messages */
        bool has_boot;
        int64_t boot; /* 0: the current boot, -1: the previous one */
} SystemLogQuery;
