/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/json-path.h"

#include "common/macros.h"

json_t *json_walk(const json_t *object, const char *const *keys) {
        json_t *value = NULL;

        for (; *keys; keys++) {
                value = json_object_get(object, *keys);
                object = value;
        }
        return value;
}

const json_t *find_status_condition(const json_t *object, const char *type) {
        size_t i;
        json_t *condition;

        json_array_foreach(json_at(object, "status", "conditions"), i, condition)
                if (streq_ptr(json_text(condition, "type"), type))
                        return condition;
        return NULL;
}
