/* SPDX-License-Identifier: Apache-2.0 */
/* Text with $(NAME) in it, and files of variables; the first line of the input is the name. */

#include "tests/fuzz/fuzz.h"

#include "agent/bundle/env-file.h"
#include "agent/bundle/environment.h"
#include "common/cleanup.h"

#include <errno.h>

enum {
        GROWTH_MAX = 16 /* "$(a)" becomes the value of A */
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        cleanup_free char *text = strndup((const char *) data, size);
        cleanup_free char *value = NULL, *expanded = NULL, *missing = NULL;
        cleanup_error Error error = ERROR_NULL;
        cleanup_with(variable_set_done) VariableSet env = VARIABLE_SET_NULL;
        char *rest = text;
        const char *name;
        int r;

        assert(text);
        name = strsep(&rest, "\n");
        if (!rest)
                return 0;
        r = env_file_find(rest, name, &value, &error);
        assert(r >= 0 || (r == -EBADMSG && error.message));
        assert(variable_set_put(&env, "A", "0123456789abcdef") >= 0);
        assert(variable_set_put(&env, "EMPTY", "") >= 0);
        r = expand_variables(rest, &env, &expanded, &missing);
        assert(r >= 0 || r == -E2BIG);
        assert(r < 0 || strlen(expanded) <= strlen(rest) * GROWTH_MAX);
        return 0;
}
