/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/json-text.h"

#include <errno.h>
#include <string.h>

int json_text_copy(const json_t *object, const char *key, char **ret) {
        const char *text = json_string_value(json_object_get(object, key));

        *ret = text ? strdup(text) : NULL;
        return text && !*ret ? -ENOMEM : 0;
}
