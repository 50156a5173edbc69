/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/fetch/copy.h"

#include "agent/fetch/metadata.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <limits.h>

static int copy_bytes(int from, int to, uint64_t *ret_copied) {
        uint64_t total = 0;

        for (;;) {
                char buffer[64 * 1024];
                ssize_t n = read(from, buffer, sizeof(buffer));
                int r;

                if (n < 0)
                        return -errno;
                if (n == 0)
                        break;
                r = write_all(to, buffer, (size_t) n);
                if (r < 0)
                        return r;
                total += (uint64_t) n;
        }
        *ret_copied = total;
        return 0;
}

int copy_up_file(const View *view, int layer, const char *path, int dir_fd, const char *base,
                 uint64_t *ret_copied) {
        cleanup_close int from = open_plainly(view->layers[layer], path, O_RDONLY | O_NONBLOCK);
        cleanup_close int to = -EBADF;
        Metadata metadata;
        struct stat st;
        int r;

        if (from < 0)
                return from;
        if (fstat(from, &st) < 0)
                return -errno;
        metadata = metadata_of(&st);
        to = openat(dir_fd, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (to < 0)
                return -errno;
        r = copy_bytes(from, to, ret_copied);
        if (r >= 0)
                r = metadata_apply(to, &metadata);
        if (r >= 0)
                r = xattr_copy(from, to);
        return r < 0 ? r : metadata_apply_times(to, &metadata);
}

int copy_up_symlink(const View *view, int layer, const char *path, int dir_fd, const char *base,
                    const struct stat *st) {
        Metadata metadata = metadata_of(st);
        char target[PATH_MAX];
        int r;

        r = view_readlink(view, layer, path, target, sizeof(target));
        if (r < 0)
                return r;
        if (symlinkat(target, dir_fd, base) < 0)
                return -errno;
        return metadata_apply_at(dir_fd, base, &metadata);
}
