/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What 'get' prints, in the format that was asked for. */

#include "agent/cli/columns.h"

#include <jansson.h>

typedef enum Format {
        FORMAT_TABLE,
        FORMAT_WIDE,
        FORMAT_JSON,
        FORMAT_YAML,
        FORMAT_NAME,
        N_FORMATS,
} Format;

/* NULL is the table. 0, or STATUS_USAGE, said. */
int parse_format(const char *text, Format *ret);
bool format_is_table(Format format);

/* One object as JSON or YAML; in a stream each has a mark before it. 0 or -errno. */
int print_object(Format format, bool is_in_stream, json_t *object);

/* Many objects are a List, as kubectl prints them; the one that was asked for by name is itself. */
int print_list(Format format, bool is_by_name, json_t *objects);

/* "pod/web" for each. */
int print_object_names(const char *kind, const json_t *objects);

/* What 'write_row' makes of the objects, below headings where there are any. */
typedef void (*write_row_t)(const json_t *object, FILE *out, void *userdata);
int print_rows(Columns *columns, const char *headings, const json_t *objects, write_row_t write_row,
               void *userdata);

/* "No resources found in default namespace.", on standard error. NULL: in none. */
void report_nothing_found(const char *namespace);
