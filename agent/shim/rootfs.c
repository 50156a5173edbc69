/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/rootfs.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "common/macros.h"

#include <fcntl.h>
#include <sys/stat.h>

static const char *const kernel_directories[] = { "dev", "proc", "sys" };

int rootfs_check(const char *rootfs, Error *reterr) {
        cleanup_close int root_fd = open_no_symlinks(AT_FDCWD, rootfs, O_PATH | O_DIRECTORY, 0);
        struct stat st;

        if (root_fd < 0)
                return error_setf(reterr, -root_fd, "cannot open '%s': %s", rootfs,
                                  strerror(-root_fd));
        for (size_t i = 0; i < N_ELEMENTS(kernel_directories); i++) {
                if (fstatat(root_fd, kernel_directories[i], &st, AT_SYMLINK_NOFOLLOW) < 0) {
                        if (errno == ENOENT)
                                continue;
                        return error_setf(reterr, errno, "cannot inspect '/%s' of the image: %s",
                                          kernel_directories[i], strerror(errno));
                }
                if (S_ISLNK(st.st_mode))
                        return error_setf(reterr, ELOOP,
                                          "'/%s' of the image is a symbolic link; it must be a "
                                          "directory, or be absent",
                                          kernel_directories[i]);
        }
        return 0;
}
