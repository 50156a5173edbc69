/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/json-memfd.h"

#include "common/json-text.h"
#include "common/memfd.h"

#include <errno.h>
#include <string.h>

int json_memfd_open(const json_t *json, const char *name) {
        char *text = json ? json_to_text(json, JSON_COMPACT) : NULL;
        int fd;

        if (!text)
                return -ENOMEM;
        fd = memfd_open(name, text, strlen(text));
        explicit_bzero(text, strlen(text));
        free(text);
        return fd;
}
