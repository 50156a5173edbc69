/* SPDX-License-Identifier: Apache-2.0 */
/* A reply of the agent in JSON becomes the list and the table of a resource, which the first byte
 * chooses: each row has a cell for each column. */

#include "tests/fuzz/fuzz.h"

#include "agent/node-api/kubernetes/object-list.h"
#include "common/cleanup.h"
#include "common/json-text.h"

#include <errno.h>

static void check_table(const json_t *table) {
        size_t n = json_array_size(json_object_get(table, "columnDefinitions")), i;
        const json_t *row;

        assert(n > 0);
        json_array_foreach(json_object_get(table, "rows"), i, row)
                assert(json_array_size(json_object_get(row, "cells")) == n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const uint64_t now = UINT64_C(1700000000000000);
        const ObjectForm plain = { 0 }, tabular = { .table_version = "v1" };
        const ListQuery query = { .limit = size > 0 ? data[0] / 16 : 0 };
        const ServedResource *resource;
        cleanup_free char *text = NULL;
        cleanup_json json_t *objects = NULL, *list = NULL, *table = NULL;
        int r;

        if (size == 0)
                return 0;
        resource = &served_resources[data[0] % n_served_resources];
        text = strndup((const char *) data + 1, size - 1);
        assert(text);
        r = served_objects_parse(resource, text, &objects);
        assert(r == 0 || r == -EBADMSG);
        if (r < 0)
                return 0;
        list = object_list_format(resource, objects, &query, &plain, 1, now);
        table = object_list_format(resource, objects, &query, &tabular, 1, now);
        assert(list && table);
        check_table(table);
        return 0;
}
