/* SPDX-License-Identifier: Apache-2.0 */
/* The agent starts this program with an end of the channel as standard input. */

#include "agent/plugin-host/plugin-host-confine.h"
#include "agent/plugin-host/plugin-host.h"
#include "common/log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_socket(int fd) {
        int type;
        socklen_t length = sizeof(type);

        return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

int main(int argc, char *argv[]) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (argc > 1 || !is_socket(STDIN_FILENO)) {
                fputs("mainstay-plugins is started by mainstayd. See mainstay-devices(7).\n",
                      stderr);
                return 2;
        }
        (void) signal(SIGPIPE, SIG_IGN);
        r = confine_plugin_host(&error);
        if (r >= 0)
                r = plugin_host_run(STDIN_FILENO);
        if (r < 0)
                (void) log_error_errno(r, "%s", error.message ? error.message : "mainstay-plugins");
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
