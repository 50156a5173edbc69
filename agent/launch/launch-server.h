/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

typedef struct LaunchServerSpec {
        const char *directory; /* directory of the programs */
        const char *unit;      /* unit to which clients must belong; NULL: any */
        unsigned idle_sec;
} LaunchServerSpec;

/* Serves the listening socket, with a keeper for each connection, and returns when there has been
 * no connection for 'idle_sec'. 0 or -errno. */
int launch_serve(int listen_fd, const LaunchServerSpec *spec);
