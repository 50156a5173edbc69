/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Text in columns, aligned as by Go's text/tabwriter: a tab ends a cell, and adjacent lines that
 * have a cell in the same column share its width. kubectl's tables and descriptions are aligned
 * this way. */

#include "common/macros.h"

#include <stdio.h>

enum {
        COLUMNS_MAX = 16
};

typedef struct Columns {
        unsigned min_width; /* minimum width of a cell, including padding */
        unsigned padding;
        bool remembers; /* a column is never narrower than in an earlier call */
        unsigned widths[COLUMNS_MAX];
} Columns;

/* kubectl's settings for tables and for descriptions. */
#define COLUMNS_TABLE       ((Columns){ .min_width = 6, .padding = 3, .remembers = true })
#define COLUMNS_DESCRIPTION ((Columns){ .min_width = 0, .padding = 2 })

/* Writes 'text' with its tabs replaced by padding, and control characters made visible. 0 or
 * -ENOMEM. */
int columns_write(Columns *columns, const char *text, FILE *out);

/* Closes an open_memstream() stream, prints its text as a description, and frees it. 0 or -ENOMEM.
 */
int columns_print_description(FILE *stream, char **text);
