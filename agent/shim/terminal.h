/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Receives the terminal that a runtime creates for a container: the runtime connects to a socket
 * (runc's --console-socket) and sends the descriptor of the master side. */

#include "agent/shim/epoll-loop.h"
#include "common/error.h"

typedef struct Terminal Terminal;

/* The master side has arrived: non-blocking, O_CLOEXEC, to be closed by the callee. */
typedef void (*terminal_master_t)(int master_fd, void *userdata);

/* Listens at 'path'; an earlier socket there is replaced. 0 or -errno. */
int terminal_new(int epoll_fd, const char *path, terminal_master_t on_master, void *userdata,
                 Terminal **ret, Error *reterr);

/* Takes the master side if it has been sent. The loop does this itself, so call it only if the
 * descriptor must have been sent since the last turn of the loop. Never waits. */
void terminal_receive_master(Terminal *terminal);

/* Also removes the socket. NULL is allowed. */
Terminal *terminal_free(Terminal *terminal);
