/* SPDX-License-Identifier: Apache-2.0 */
/* mainstay-launch: the server if it is called by its own name, otherwise the client for the program
 * by whose name it is called. */

#include "agent/launch/launch-client.h"
#include "agent/launch/launch-server.h"
#include "common/cleanup.h"
#include "common/log.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
        IDLE_SEC = 300,
        EXIT_USAGE = 2,
};

static const char help[] =
        "Usage: mainstay-launch [--for UNIT] <LISTENING-SOCKET\n"
        "\n"
        "Runs programs of Mainstay for the agent, which has fewer privileges than they need. The\n"
        "socket unit mainstay-launch.socket starts it; it ends when it was idle for five minutes.\n"
        "By another name, it has the program of that name started, and ends as that has ended.\n"
        "\n"
        "  --for UNIT  only for processes of root in this unit of systemd; else for all of root\n"
        "  --help, --version\n";

static int serve(const char *unit) {
        char path[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
        char *slash;
        int r;

        if (n < 0)
                return log_error_errno(-errno, "Cannot find the directory of the programs") < 0;
        path[n] = '\0';
        slash = strrchr(path, '/');
        *slash = '\0';
        r = launch_serve(
                STDIN_FILENO,
                &(LaunchServerSpec){ .directory = path, .unit = unit, .idle_sec = IDLE_SEC });
        if (r < 0)
                (void) log_error_errno(r, "Cannot serve the socket");
        return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv) {
        const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
        const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "";

        if (!streq(name, "mainstay-launch"))
                return launch_client(name, argv);
        if (argc == 2 && streq(argv[1], "--help")) {
                (void) fputs(help, stdout);
                return EXIT_SUCCESS;
        }
        if (argc == 2 && streq(argv[1], "--version")) {
                (void) printf("mainstay-launch %s\n", MAINSTAY_VERSION);
                return EXIT_SUCCESS;
        }
        if (argc == 3 && streq(argv[1], "--for"))
                return serve(argv[2]);
        if (argc != 1) {
                log_error("Expected --for UNIT or no argument; see mainstay-launch --help");
                return EXIT_USAGE;
        }
        return serve(NULL);
}
