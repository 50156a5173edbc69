/* SPDX-License-Identifier: Apache-2.0 */
/* Copies strings out of parsed JSON. */

#include "agent/kubeclient/json-string.h"

#include "common/json-text.h"

#include <errno.h>
#include <string.h>

int json_copy_string(const json_t *object, const char *key, char **ret) {
        const char *text = json_text(object, key);

        *ret = text ? strdup(text) : NULL;
        return text && !*ret ? -ENOMEM : 0;
}
