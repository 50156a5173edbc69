/* SPDX-License-Identifier: Apache-2.0 */
#include "common/unix-socket.h"

#include "common/cleanup.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

int unix_connect(const char *path, int type) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        cleanup_close int fd = -EBADF;

        if (strlen(path) >= sizeof(address.sun_path))
                return -ENAMETOOLONG;
        memcpy(address.sun_path, path, strlen(path) + 1);
        /* Makes exactly this system call, because on i386 the C library uses another one, which
         * confined programs may not make. */
        fd = (int) syscall(SYS_socket, AF_UNIX, type | SOCK_CLOEXEC, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return -errno;
        return TAKE_FD(fd);
}
