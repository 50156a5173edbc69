/* SPDX-License-Identifier: Apache-2.0 */
/* USER of an image, its /etc/passwd and its /etc/group, each followed by a NUL: the resulting IDs
 * are in the range that is allowed for containers. */

#include "tests/fuzz/fuzz.h"

#include "common/cleanup.h"
#include "common/image-user.h"

#include <string.h>

static const char *next_text(const char **at, const char *end) {
        const char *text = *at;
        size_t length = strnlen(text, (size_t) (end - text));

        *at = text + length + (text + length < end);
        return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_free char *copy = calloc(1, size + 1);
        const char *at = copy, *user, *passwd, *group;
        cleanup_error Error error = ERROR_NULL;
        ImageUser found = { 0 };

        assert(copy);
        memcpy(copy, data, size);
        user = next_text(&at, copy + size);
        passwd = next_text(&at, copy + size);
        group = next_text(&at, copy + size);
        if (image_user_find(user, passwd, group, &found, &error) < 0) {
                assert(error.message);
                return 0;
        }
        assert(found.uid <= INT32_MAX && found.gid <= INT32_MAX);
        for (size_t i = 0; i < found.n_groups; i++)
                assert(found.groups[i] <= INT32_MAX);
        image_user_done(&found);
        return 0;
}
