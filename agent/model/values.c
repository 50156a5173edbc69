/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/values.h"

#include "common/array.h"
#include "common/cleanup.h"

#include <errno.h>
#include <stdlib.h>

const char *string_map_get(const StringMap *map, const char *key) {
        for (size_t i = 0; i < map->n; i++)
                if (streq(map->items[i].key, key))
                        return map->items[i].value;
        return NULL;
}

int string_map_set(StringMap *map, const char *key, const char *value) {
        cleanup_free char *new_key = strdup(key), *new_value = strdup(value);
        KeyValue *item;
        size_t i = 0;

        if (!new_key || !new_value)
                return -ENOMEM;
        while (i < map->n && strcmp(map->items[i].key, key) < 0)
                i++;
        if (i < map->n && streq(map->items[i].key, key)) {
                free(map->items[i].value);
                map->items[i].value = TAKE_PTR(new_value);
                return 0;
        }
        item = ARRAY_INSERT(map->items, map->n, i);
        if (!item)
                return -ENOMEM;
        *item = (KeyValue){ .key = TAKE_PTR(new_key), .value = TAKE_PTR(new_value) };
        return 0;
}

void string_map_remove(StringMap *map, const char *key) {
        for (size_t i = 0; i < map->n; i++) {
                if (!streq(map->items[i].key, key))
                        continue;
                free(map->items[i].key);
                free(map->items[i].value);
                ARRAY_REMOVE(map->items, map->n, i);
                return;
        }
}

void string_map_done(StringMap *map) {
        for (size_t i = 0; i < map->n; i++) {
                free(map->items[i].key);
                free(map->items[i].value);
        }
        free(map->items);
        *map = (StringMap){ 0 };
}

bool string_map_equal(const StringMap *a, const StringMap *b) {
        if (a->n != b->n)
                return false;
        for (size_t i = 0; i < a->n; i++)
                if (!streq_ptr(string_map_get(b, a->items[i].key), a->items[i].value))
                        return false;
        return true;
}
