/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A proxy for connections to an untrusted server: the client connects to the proxy instead, which
 * passes on a limited number of bytes, a part of them in each turn of the loop. This is for
 * libraries that do not return from reading as long as data arrives. */

#include "common/error.h"

#include <stddef.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

typedef struct SocketProxy SocketProxy;

/* Connects to the server without blocking, and listens for one connection of this process, which is
 * closed when the server closes its own connection or has sent more than 'max_bytes'. That many
 * bytes must fit into a socket buffer, which is the case for 64 KiB. */
int socket_proxy_new(sd_event *event, const struct sockaddr *address, socklen_t length,
                     size_t max_bytes, SocketProxy **ret);
SocketProxy *socket_proxy_free(SocketProxy *relay);
DEFINE_CLEANUP(SocketProxy *, socket_proxy_free)

/* The address on which it listens: an abstract AF_UNIX address, short enough for a struct
 * sockaddr. */
int socket_proxy_address(const SocketProxy *relay, struct sockaddr *ret, socklen_t *ret_length);

/* The reason why there is no connection, as -errno; 0: a connection exists, has existed, or is
 * being established. */
int socket_proxy_error(const SocketProxy *relay);
