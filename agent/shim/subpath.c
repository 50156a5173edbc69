/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/subpath.h"

#include "agent/shim/mountinfo.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/selinux.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Opens the existing part of a path, following links that stay beneath the root; '*ret_rest' is the
 * missing part. */
static int open_existing(int root_fd, const char *path, const char **ret_rest) {
        size_t length = strlen(path);

        for (;;) {
                cleanup_free char *prefix = strndup(path, length);
                int fd;

                if (!prefix)
                        return -ENOMEM;
                fd = open_beneath(root_fd, prefix[0] ? prefix : ".", O_PATH, 0);
                if (fd != -ENOENT || length == 0) {
                        *ret_rest = path + length;
                        return fd;
                }
                while (length > 0 && path[length - 1] == '/')
                        length--;
                while (length > 0 && path[length - 1] != '/')
                        length--;
        }
}

/* A new directory in a volume gets the mode of the volume's root, and its label. */
static int make_beneath(int root_fd, const char *path) {
        cleanup_creating SelinuxCreating creating = false;
        cleanup_free char *label = NULL;
        cleanup_close int fd = -EBADF;
        const char *rest = path;
        struct stat st;

        fd = fstat(root_fd, &st) < 0 ? -errno : open_existing(root_fd, path, &rest);
        if (fd < 0)
                return fd;
        if (selinux_is_enabled() && selinux_label_get(root_fd, &label) >= 0)
                creating = selinux_create_as(label) >= 0;
        return make_path_at(fd, rest, true, st.st_mode & 07777);
}

int subpath_open(const char *path, const char *root, Error *reterr) {
        cleanup_close int root_fd = -EBADF;
        const char *rest;
        int fd;

        if (!path_is_beneath(path, root))
                return error_setf(reterr, EXDEV, "'%s' is not beneath '%s'", path, root);
        rest = path + strlen(root);
        rest += strspn(rest, "/");
        root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (root_fd < 0)
                return error_setf(reterr, errno, "cannot open '%s': %s", root, strerror(errno));
        fd = open_beneath(root_fd, *rest ? rest : ".", O_PATH, 0);
        if (fd == -ENOENT)
                fd = make_beneath(root_fd, rest);
        if (fd < 0)
                return error_setf(reterr, -fd, "cannot open '%s' beneath '%s': %s", rest, root,
                                  strerror(-fd));
        return fd;
}
