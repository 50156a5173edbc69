/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/decode-path.h"

#include "agent/model/names.h"

#include <stdio.h>

const char *decode_path_format(const DecodePath *path, char buffer[DECODE_PATH_SIZE]) {
        char key[EXCERPT_SIZE];
        size_t n;

        if (!path) {
                buffer[0] = '\0';
                return buffer;
        }
        decode_path_format(path->parent, buffer);
        n = strlen(buffer);
        if (!path->key)
                (void) snprintf(buffer + n, DECODE_PATH_SIZE - n, "[%zu]", path->index);
        else
                (void) snprintf(buffer + n, DECODE_PATH_SIZE - n,
                                path->is_map_key ? "[%s]"
                                : n > 0          ? ".%s"
                                                 : "%s",
                                excerpt(key, path->key));
        return buffer;
}
