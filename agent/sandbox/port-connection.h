/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Connections to ports of pods, for port-forward. mainstay-shim connects, so that the agent does
 * not have to enter the network namespaces of pods. */

#include "agent/sandbox/sandbox-config.h"
#include "common/error.h"

/* Requests a connection to a TCP port of the loopback address of a network namespace; negative: the
 * node's. Returns a socket that receives one packet: one byte with the connection, which may still
 * be in progress, or a message that explains why there is none. The socket is closed without a
 * packet if the program fails. -errno with a message. */
int port_connection_request(const SandboxConfig *config, int namespace_fd, unsigned port,
                            bool is_ipv6, Error *reterr);
