/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The copier's side of copier.h: reads the output of containers and of programs in them, and copies
 * it to logs, the journal and attached clients. It has no privilege and opens nothing: all that it
 * uses comes as a descriptor. */

/* Serves the shim until that closes the sockets, and exits. For a process that is confined. */
_Noreturn void copier_process_run(int socket_fd, int files_fd);
