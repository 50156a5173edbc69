/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/archive/tar-write.h"

#include "common/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
        BLOCK = 512,
        BUFFER_SIZE = 256 * 1024
};

#define SIZE_MAX_USTAR (UINT64_C(1) << 33)

static const char zeros[2 * BLOCK];

int tar_write_header(int fd, const char *name, uint64_t size) {
        char header[BLOCK + 1] = { 0 };
        unsigned sum = 0;

        if (size >= SIZE_MAX_USTAR)
                return -EFBIG;
        (void) snprintf(header, 100, "%s", name);
        (void) snprintf(header + 100, 8, "%07o", 0644U);
        (void) snprintf(header + 108, 8, "%07o", 0U);
        (void) snprintf(header + 116, 8, "%07o", 0U);
        (void) snprintf(header + 124, 12, "%011llo", (unsigned long long) size);
        (void) snprintf(header + 136, 12, "%011o", 0U);
        memset(header + 148, ' ', 8);
        header[156] = '0';
        memcpy(header + 257, "ustar\00000", 8);
        for (size_t i = 0; i < BLOCK; i++)
                sum += (unsigned char) header[i];
        (void) snprintf(header + 148, 8, "%06o", sum);
        return write_all(fd, header, BLOCK);
}

int tar_write_padding(int fd, uint64_t size) {
        size_t rest = (size_t) (size % BLOCK);

        return rest == 0 ? 0 : write_all(fd, zeros, BLOCK - rest);
}

int tar_write_file(int fd, const char *name, const void *data, size_t length) {
        int r = tar_write_header(fd, name, length);

        if (r < 0)
                return r;
        r = write_all(fd, data, length);
        return r < 0 ? r : tar_write_padding(fd, length);
}

static int copy_member_bytes(int from, int to, uint64_t size) {
        static char buffer[BUFFER_SIZE];

        while (size > 0) {
                ssize_t n = read(from, buffer, (size_t) MIN(size, (uint64_t) sizeof(buffer)));
                int r;

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EBADMSG;
                r = write_all(to, buffer, (size_t) n);
                if (r < 0)
                        return r;
                size -= (uint64_t) n;
        }
        return 0;
}

int tar_write_from(int fd, const char *name, int from, uint64_t size) {
        int r = tar_write_header(fd, name, size);

        if (r < 0)
                return r;
        r = copy_member_bytes(from, fd, size);
        return r < 0 ? r : tar_write_padding(fd, size);
}

int tar_write_end(int fd) {
        return write_all(fd, zeros, sizeof(zeros));
}
