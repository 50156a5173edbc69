/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A connection to a port of a pod, for port-forward. A separate process opens it, because entering
 * the pod's network namespace needs a privilege that the agent does not have in its unit. */

#include <stdbool.h>

/* Receives the network namespace through the socket, connects in it, and sends the connection back,
 * or a message that explains why there is none. 0 or -errno. */
int port_connector_serve(int socket_fd, unsigned port, bool is_ipv6);
