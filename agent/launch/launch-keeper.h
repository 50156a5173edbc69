/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The keeper of one program: a process that starts the program, and ends with it. */

#include <sys/types.h>

/* Receives a request on the connection, runs the program, which is next to this one in 'directory',
 * kills it if the connection is closed, and reports how it ended. 'server' is the parent, with
 * which both end. Returns the exit status of the keeper. */
int launch_keeper(int connection_fd, const char *directory, pid_t server);
