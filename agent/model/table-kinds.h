/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The columns of each kind as an API server returns them (meta.k8s.io Table), for `mainstay get`
 * and for kubectl on a lone node. Pure. */

#include <jansson.h>
#include <stdint.h>

typedef struct TableColumn {
        const char *name;
        const char *type;   /* "string", "integer" or "boolean" */
        const char *format; /* "name" for the column with the object's name, else "" */
        int priority;       /* 0; 1: wide only */
        const char *description;
} TableColumn;

/* Describes how objects of one kind are printed. */
typedef struct TableKind {
        const TableColumn *columns; /* terminated by an entry without a name */
        /* Appends a cell of the right type for each column. 'now_usec' is realtime. */
        void (*write_cells)(const json_t *object, uint64_t now_usec, json_t *cells);
} TableKind;

extern const TableKind pod_table_kind, node_table_kind, event_table_kind, namespace_table_kind,
        daemonset_table_kind, controller_revision_table_kind, config_map_table_kind,
        secret_table_kind, priority_class_table_kind, runtime_class_table_kind, lease_table_kind,
        disruption_budget_table_kind, name_table_kind, service_table_kind;
