/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/status-condition.h"

#include "common/json-text.h"

const json_t *find_status_condition(const json_t *object, const char *type) {
        size_t i;
        json_t *condition;

        json_array_foreach(json_at(object, "status", "conditions"), i, condition)
                if (streq_ptr(json_text(condition, "type"), type))
                        return condition;
        return NULL;
}
