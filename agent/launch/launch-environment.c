/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/launch/launch-environment.h"

#include "common/macros.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* libcurl reads the proxy variables in lower and upper case. */
static bool may_pass_variable(const char *variable) {
        static const char *const names[] = { "all_proxy=", "http_proxy=", "https_proxy=",
                                             "no_proxy=",  "TZ=",         "JOURNAL_STREAM=",
                                             "MAINSTAY_" };

        for (size_t i = 0; i < N_ELEMENTS(names); i++)
                if (strncasecmp(variable, names[i], strlen(names[i])) == 0)
                        return true;
        return false;
}

static size_t count_variables(char *const *variables) {
        size_t n = 0;

        while (variables[n])
                n++;
        return n;
}

char **launch_environment(char *const *server, char *const *client) {
        char **made = calloc(count_variables(server) + count_variables(client) + 1, sizeof(char *));
        size_t n = 0;

        if (!made)
                return NULL;
        for (size_t i = 0; server[i]; i++)
                if (!may_pass_variable(server[i]))
                        made[n++] = server[i];
        for (size_t i = 0; client[i]; i++)
                if (may_pass_variable(client[i]))
                        made[n++] = client[i];
        return made;
}
