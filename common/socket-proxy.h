/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A connection to a server that is not trusted, at arm's length: whoever asks connects to the relay
 * instead, and gets what comes a piece at a time, between turns of the loop, and no more than a
 * limit in all. For libraries that read for as long as there is something to read. */

#include "common/error.h"

#include <stddef.h>
#include <sys/socket.h>
#include <systemd/sd-event.h>

typedef struct SocketProxy SocketProxy;

/* Connects to the server, without waiting, and listens for one connection of our own process, which
 * ends when the server's does, or when the server has said more than 'max_bytes'. Of these all must
 * have room in a socket: 64 KiB have. */
int socket_proxy_new(sd_event *event, const struct sockaddr *address, socklen_t length,
                     size_t max_bytes, SocketProxy **ret);
SocketProxy *socket_proxy_free(SocketProxy *relay);
DEFINE_CLEANUP(SocketProxy *, socket_proxy_free)

/* Where it listens: an abstract address of AF_UNIX, which is short enough for a struct sockaddr. */
int socket_proxy_address(const SocketProxy *relay, struct sockaddr *ret, socklen_t *ret_length);

/* Why there is no connection, as -errno; 0: there is, or was, or may yet be. */
int socket_proxy_error(const SocketProxy *relay);
