/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The copier's side of copier.h: reads the output of containers and of programs in them, and copies
 * it to logs, the journal and attached clients. It has no privileges and opens nothing: it receives
 * everything that it uses as descriptors. */

/* Serves the shim until it closes the sockets, then exits. The process must be confined. */
_Noreturn void copier_process_run(int socket_fd, int files_fd);
