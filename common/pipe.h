/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pipes between this process, which must not block, and a program that does not expect EAGAIN. */

typedef enum PipeEnd {
        PIPE_READ_END = 0,
        PIPE_WRITE_END = 1,
} PipeEnd;

/* Creates a pipe, with both ends close-on-exec. The end 'own' is non-blocking, the other end is
 * not. 'ret_fds' receives the descriptors, in the order of PipeEnd; the caller owns them. Returns
 * 0, or a negative errno with nothing left open. */
int pipe_open(PipeEnd own, int ret_fds[2]);

/* Makes the open file behind 'fd' non-blocking, for every process that shares it. Returns 0 or a
 * negative errno. */
int fd_set_nonblocking(int fd);
