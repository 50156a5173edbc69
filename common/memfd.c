/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memfd.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

int memfd_open(const char *name, const void *data, size_t length) {
        cleanup_close int fd = memfd_create(name, MFD_CLOEXEC);
        int r = fd < 0 ? -errno : write_all(fd, data, length);

        if (r < 0)
                return r;
        return lseek(fd, 0, SEEK_SET) < 0 ? -errno : TAKE_FD(fd);
}
