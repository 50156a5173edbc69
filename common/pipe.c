/* SPDX-License-Identifier: Apache-2.0 */
#include "common/pipe.h"
#include "common/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int fd_set_nonblocking(int fd) {
        int flags = fcntl(fd, F_GETFL);

        return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

int pipe_open(PipeEnd own, int ret_fds[2]) {
        int r;

        if (pipe2(ret_fds, O_CLOEXEC) < 0)
                return -errno;
        r = fd_set_nonblocking(ret_fds[own]);
        if (r < 0) {
                close_fd(ret_fds[PIPE_READ_END]);
                close_fd(ret_fds[PIPE_WRITE_END]);
        }
        return r;
}
