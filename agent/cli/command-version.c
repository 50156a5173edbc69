/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay version`. */

#include "agent/cli/cli.h"

#include "agent/cli/agent-client.h"
#include "common/cleanup.h"

#include <stdio.h>

/* mainstay version: its own version, and that of the agent if it responds (from its metrics). */

#define BUILD_INFO "\nmainstay_build_info{version=\""

int run_version(const Options *options) {
        cleanup_free char *metrics = NULL;
        const char *version;

        printf("Client Version: %s\n", MAINSTAY_VERSION);
        if (client_get(options->socket, "/metrics", &metrics, NULL) < 0)
                return STATUS_OK;
        version = strstr(metrics, BUILD_INFO);
        if (version) {
                version += strlen(BUILD_INFO);
                printf("Agent Version: %.*s\n", (int) strcspn(version, "\"\n"), version);
        }
        return STATUS_OK;
}
