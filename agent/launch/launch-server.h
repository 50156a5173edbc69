/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

typedef struct LaunchServerSpec {
        const char *directory; /* of the programs */
        const char *unit;      /* of the clients; NULL: any */
        unsigned idle_sec;
} LaunchServerSpec;

/* Serves the listening socket, with a keeper for each connection, and returns when there has been
 * none for 'idle_sec'. 0 or -errno. */
int launch_serve(int listen_fd, const LaunchServerSpec *spec);
