/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Prints the objects of `mainstay get` in each format: tables have the API server's columns
 * (model/table-kinds.h), and one more at the end with -o wide. */

#include "agent/cli/command-get.h"
#include "agent/model/table-kinds.h"

/* How the objects of one resource are printed. */
typedef struct GetKind {
        const char *word; /* for -o name: "pod", "daemonset.apps" */
        bool is_cluster_wide;
        const TableKind *table;
        const char *extra_heading; /* an additional column for -o wide that kubectl does not have;
                                    * or NULL */
        const char *(*extra_cell)(const json_t *object); /* NULL is printed as "<none>" */
        /* Replaces cells for which more details are known here than at an API server; NULL:
         * none. */
        void (*replace_cells)(const json_t *object, json_t *cells);
} GetKind;

/* The output of one command. Initialized with zeros, except for the first two members and
 * COLUMNS_TABLE. */
typedef struct GetOutput {
        const GetRequest *request;
        const GetKind *kind;
        Columns columns;
        bool has_headings; /* already printed */
        json_t *listed;    /* objects that a watch does not repeat; NULL: none was printed */
} GetOutput;

void get_output_done(GetOutput *output);

/* Prints a list; a table without rows is omitted. 0 or -errno. */
int get_output_list(GetOutput *output, json_t *objects);

/* Prints an object of a watch, unless it was listed in this state. 'type' is as in watch_object_t.
 * 0 or -errno. */
int get_output_event(GetOutput *output, const char *type, json_t *object);
