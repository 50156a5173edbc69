/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/mount-point.h"

#include "agent/shim/mountinfo.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/selinux.h"

#include <fcntl.h>
#include <sys/stat.h>

/* A key of the volume: the runtime mounts on the file that the link leads to. */
static bool is_link_in_directory(int root_fd, const char *path) {
        cleanup_close int fd = open_no_symlinks(root_fd, path, O_PATH | O_NOFOLLOW, 0);
        struct stat st;

        return fd >= 0 && fstat(fd, &st) >= 0 && S_ISLNK(st.st_mode);
}

static int explain_mount_point(int r, const char *path, bool is_directory, Error *reterr) {
        if (r == -ELOOP || (r == -ENOTDIR && is_directory))
                return error_setf(
                        reterr, -r,
                        "cannot make the mount point '%s' in the volume: a part of it is a "
                        "key of the volume; mount it elsewhere, or rename the key",
                        path);
        return error_setf(reterr, -r, "cannot make the mount point '%s' in the volume: %s", path,
                          strerror(-r));
}

/* Another container of the pod may have mounted something else there. */
static int check_mount_point_type(int fd, const char *path, bool is_directory, Error *reterr) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (S_ISDIR(st.st_mode) == is_directory)
                return 0;
        return error_setf(reterr, is_directory ? ENOTDIR : EISDIR,
                          "the mount point '%s' in the volume is a %s, and a %s is to be mounted "
                          "there; mount it elsewhere",
                          path, is_directory ? "file" : "directory",
                          is_directory ? "directory" : "file");
}

/* It gets the label of the volume. */
static int make_in_volume(int root_fd, const char *path, bool is_directory) {
        cleanup_creating SelinuxCreating creating = false;
        cleanup_free char *label = NULL;

        if (selinux_is_enabled() && selinux_label_get(root_fd, &label) >= 0)
                creating = selinux_create_as(label) >= 0;
        return make_path_at(root_fd, path, is_directory, is_directory ? 0755 : 0644);
}

int mount_point_make(const char *source, const char *target, const char *root, Error *reterr) {
        cleanup_close int root_fd = -EBADF, fd = -EBADF;
        bool is_directory;
        const char *path;
        struct stat st;

        if (!path_is_beneath(target, root))
                return error_setf(reterr, EXDEV, "'%s' is not beneath '%s'", target, root);
        path = target + strlen(root) + strspn(target + strlen(root), "/");
        if (stat(source, &st) < 0)
                return error_setf(reterr, errno, "cannot open '%s': %s", source, strerror(errno));
        is_directory = S_ISDIR(st.st_mode);
        root_fd = open_no_symlinks(AT_FDCWD, root, O_RDONLY | O_DIRECTORY, 0);
        if (root_fd < 0)
                return error_setf(reterr, -root_fd, "cannot open '%s': %s", root,
                                  strerror(-root_fd));
        if (is_link_in_directory(root_fd, path))
                return 0;
        fd = make_in_volume(root_fd, path, is_directory);
        if (fd < 0)
                return explain_mount_point(fd, path, is_directory, reterr);
        return check_mount_point_type(fd, path, is_directory, reterr);
}
