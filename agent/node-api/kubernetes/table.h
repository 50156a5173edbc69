/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* meta.k8s.io Table: the rows that kubectl prints, created on the server's side. Pure. */

#include "agent/model/table-kinds.h"

#include <stdbool.h>

/* The part of its object that a row contains. */
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
