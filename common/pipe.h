/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pipes between this process, which does not wait, and a program, which does not expect EAGAIN. */

typedef enum PipeEnd {
        PIPE_READ_END = 0,
        PIPE_WRITE_END = 1,
} PipeEnd;

/* Makes a pipe, with both ends closed on exec. The end 'own' does not block, and the other end
 * does. 'ret_fds' has the descriptors, as PipeEnd counts them, and belongs to the caller. Returns
 * 0, or a negative errno with nothing left open. */
int pipe_open(PipeEnd own, int ret_fds[2]);

/* Makes the open file behind 'fd' non-blocking, for all that share it. Returns 0 or a negative
 * errno. */
int fd_set_nonblocking(int fd);
