/* SPDX-License-Identifier: Apache-2.0 */
#include "common/program-path.h"

#include "common/text.h"

#include <errno.h>
#include <paths.h>
#include <stdlib.h>
#include <string.h>

const char *program_directories(void) {
        const char *directories = getenv("PATH");

        return directories ? directories : _PATH_STDPATH;
}

int program_path_next(const char **directories, const char *program, char **ret) {
        const char *first = *directories, *end;

        if (!first)
                return 0;
        end = strchrnul(first, ':');
        *ret = text_format("%.*s/%s", (int) (end - first), first, program);
        if (!*ret)
                return -ENOMEM;
        *directories = *end == ':' ? end + 1 : NULL;
        return 1;
}
