/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* meta.k8s.io Table: the rows that kubectl prints, made where the objects are. Pure. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct TableColumn {
        const char *name;
        const char *type;   /* "string", "integer" or "boolean" */
        const char *format; /* "name" of the column with the object's name, else "" */
        int priority;       /* 0; 1: wide only */
        const char *description;
} TableColumn;

/* How objects of one kind are printed. */
typedef struct TableKind {
        const TableColumn *columns; /* the last one is without a name */
        /* Appends a cell for each column. */
        void (*write_cells)(const json_t *object, uint64_t now_usec, json_t *cells);
} TableKind;

extern const TableKind pod_table_kind, node_table_kind, event_table_kind, namespace_table_kind,
        daemonset_table_kind, controller_revision_table_kind, config_map_table_kind,
        secret_table_kind, priority_class_table_kind, runtime_class_table_kind, lease_table_kind,
        disruption_budget_table_kind, name_table_kind, service_table_kind;

/* What a row has of its object. */
typedef enum TableObject {
        TABLE_OBJECT_METADATA,
        TABLE_OBJECT_WHOLE,
        TABLE_OBJECT_NONE,
} TableObject;

/* A table without rows; 'version' is "v1" or "v1beta1". With 'has_columns' false it continues one
 * whose columns were sent. NULL: out of memory. */
json_t *table_new(const TableKind *kind, const char *version, bool has_columns);

/* 0 or -ENOMEM. 'now_usec' is realtime. */
int table_add_row(json_t *table, const TableKind *kind, const char *version, json_t *object,
                  TableObject included, uint64_t now_usec);
