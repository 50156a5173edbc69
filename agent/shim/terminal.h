/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a runtime hands over the terminal that it makes for a container: it connects to a socket that
 * it was told of (runc's --console-socket) and sends the descriptor of the master side. */

#include "agent/shim/epoll-loop.h"
#include "common/error.h"

typedef struct Terminal Terminal;

/* The master side is here: non-blocking, O_CLOEXEC, the callee's to close. */
typedef void (*terminal_master_t)(int master_fd, void *userdata);

/* Listens at 'path', which whoever was there before loses. 0 or -errno. */
int terminal_new(int epoll_fd, const char *path, terminal_master_t on_master, void *userdata,
                 Terminal **ret, Error *reterr);

/* Takes the master side if it has been sent. The loop does so by itself; this is for one who knows
 * that it has been, and has not been round the loop since. Never waits. */
void terminal_receive_master(Terminal *terminal);

/* Removes the socket, too. NULL is fine. */
Terminal *terminal_free(Terminal *terminal);
