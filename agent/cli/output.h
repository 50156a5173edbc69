/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The output of 'get' in the requested format. */

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

/* NULL means the table. 0, or STATUS_USAGE after printing an error. */
int parse_format(const char *text, Format *ret);
bool format_is_table(Format format);

/* Prints one object as JSON or YAML; in a stream, each object is preceded by a separator. 0 or
 * -errno. */
int print_object(Format format, bool is_in_stream, json_t *object);

/* Several objects are printed as a List, as in kubectl; a single object that was requested by name
 * is printed alone. */
int print_list(Format format, bool is_by_name, json_t *objects);

/* Prints "pod/web" for each object. */
int print_object_names(const char *kind, const json_t *objects);

/* Prints a header line and the rows that 'write_row' writes for the objects. */
typedef void (*write_row_t)(const json_t *object, FILE *out, void *userdata);
int print_rows(Columns *columns, const char *headings, const json_t *objects, write_row_t write_row,
               void *userdata);

/* "No resources found in default namespace.", on standard error. NULL: without a namespace. */
void report_nothing_found(const char *namespace);
