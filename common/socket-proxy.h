/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A proxy for connections to an untrusted server: the client connects to the proxy instead, which
 * passes on a limited number of bytes, one piece per turn of the loop. For libraries that read
 * without returning as long as data arrives. */

#include "common/error.h"

#include <stddef.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

typedef struct SocketProxy SocketProxy;

/* Connects to the server, without waiting, and listens for one connection of our own process, which
 * is closed when the server closes its own, or has sent more than 'max_bytes'. So many bytes must
 * fit into a socket: 64 KiB do. */
int socket_proxy_new(sd_event *event, const struct sockaddr *address, socklen_t length,
                     size_t max_bytes, SocketProxy **ret);
SocketProxy *socket_proxy_free(SocketProxy *relay);
DEFINE_CLEANUP(SocketProxy *, socket_proxy_free)

/* The address it listens at: an abstract one of AF_UNIX, short enough for a struct sockaddr. */
int socket_proxy_address(const SocketProxy *relay, struct sockaddr *ret, socklen_t *ret_length);

/* The reason why there is no connection, as -errno; 0: it exists, existed, or is being
 * established. */
int socket_proxy_error(const SocketProxy *relay);
