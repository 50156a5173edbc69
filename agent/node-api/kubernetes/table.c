/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/kubernetes/table.h"

#include "common/cleanup.h"
#include "common/json-text.h"

static json_t *list_columns(const TableKind *kind, bool has_columns) {
        json_t *list = json_array();

        for (const TableColumn *column = kind->columns; has_columns && column->name; column++)
                if (json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:i}", "name",
                                                          column->name, "type", column->type,
                                                          "format", column->format, "description",
                                                          column->description, "priority",
                                                          column->priority)) < 0) {
                        json_decref(list);
                        return NULL;
                }
        return list;
}

json_t *table_new(const TableKind *kind, const char *version, bool has_columns) {
        cleanup_json json_t *columns = list_columns(kind, has_columns);
        json_t *table = columns ? json_pack("{s:s, s:s+, s:{}, s:O, s:[]}", "kind", "Table",
                                            "apiVersion", "meta.k8s.io/", version, "metadata",
                                            "columnDefinitions", columns, "rows")
                                : NULL;

        return table;
}

static json_t *row_object(json_t *object, const char *version, TableObject included) {
        if (included == TABLE_OBJECT_WHOLE)
                return json_incref(object);
        if (included == TABLE_OBJECT_NONE)
                return json_null();
        return json_pack("{s:s, s:s+, s:O*}", "kind", "PartialObjectMetadata", "apiVersion",
                         "meta.k8s.io/", version, "metadata", json_object_get(object, "metadata"));
}

int table_add_row(json_t *table, const TableKind *kind, const char *version, json_t *object,
                  TableObject included, uint64_t now_usec) {
        json_t *cells = json_array();
        json_t *row = json_pack("{s:o, s:o}", "cells", cells, "object",
                                row_object(object, version, included));

        if (!row)
                return -ENOMEM;
        kind->write_cells(object, now_usec, cells);
        return json_array_append_new(json_object_get(table, "rows"), row) < 0 ? -ENOMEM : 0;
}
