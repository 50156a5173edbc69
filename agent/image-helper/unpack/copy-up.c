/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/unpack/copy-up.h"

#include "common/cleanup.h"
#include "common/file-copy.h"

#include <fcntl.h>
#include <limits.h>

int copy_up_file(const LayerView *view, int layer, const char *path, int dir_fd, const char *base,
                 uint64_t *ret_copied) {
        cleanup_close int from =
                open_without_symlinks(view->layers[layer], path, O_RDONLY | O_NONBLOCK);
        cleanup_close int to = -EBADF;
        FileMetadata metadata;
        struct stat st;
        int r;

        if (from < 0)
                return from;
        if (fstat(from, &st) < 0)
                return -errno;
        metadata = file_metadata_of(&st);
        to = openat(dir_fd, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (to < 0)
                return -errno;
        r = file_copy_content(from, to, st.st_size);
        if (r < 0)
                return r;
        r = file_metadata_apply(to, &metadata);
        if (r < 0)
                return r;
        r = xattr_copy(from, to);
        if (r < 0)
                return r;
        r = file_metadata_apply_times(to, &metadata);
        if (r < 0)
                return r;
        *ret_copied = (uint64_t) st.st_size;
        return 0;
}

int copy_up_symlink(const LayerView *view, int layer, const char *path, int dir_fd,
                    const char *base, const struct stat *st) {
        FileMetadata metadata = file_metadata_of(st);
        char target[PATH_MAX];
        int r;

        r = layer_view_readlink(view, layer, path, target, sizeof(target));
        if (r < 0)
                return r;
        if (symlinkat(target, dir_fd, base) < 0)
                return -errno;
        return file_metadata_apply_at(dir_fd, base, &metadata);
}
