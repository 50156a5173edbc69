/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/device-nodes.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* System calls that are missing in an older libc. */
static int clone_mount(const char *path) {
        long fd = syscall(SYS_open_tree, AT_FDCWD, path,
                          OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);

        return fd < 0 ? -errno : (int) fd;
}

static int attach_mount(int fd, int target_fd) {
        return syscall(SYS_move_mount, fd, "", target_fd, "",
                       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
                       ? -errno
                       : 0;
}

int device_node_clone(const LiveDevice *device) {
        return clone_mount(device->host_path);
}

int device_nodes_open(dev_t host_dev, bool are_bound, DeviceNodes *ret) {
        struct stat st;
        int fd = open_no_symlinks(AT_FDCWD, "/dev", O_RDONLY | O_DIRECTORY, 0);

        if (fd < 0)
                return fd;
        if (fstat(fd, &st) < 0) {
                int r = -errno;

                close_fd(fd);
                return r;
        }
        /* Files in a user namespace belong to its users. */
        if (are_bound) {
                (void) setfsgid(st.st_gid);
                (void) setfsuid(st.st_uid);
        }
        *ret = (DeviceNodes){ .dev_fd = fd,
                              .are_bound = are_bound,
                              .are_nodes = st.st_dev == host_dev };
        return 0;
}

/* ---- finding a node ---- */

/* Below /dev. */
static const char *relative_path(const LiveDevice *device) {
        return device->path + strlen("/dev/");
}

/* Opens the directory of the device node and sets its name. A descriptor or -errno. */
static int open_parent(const DeviceNodes *nodes, const LiveDevice *device, bool makes,
                       const char **ret_name) {
        const char *path = relative_path(device), *slash = strrchr(path, '/');
        char directory[PATH_MAX];
        int fd;

        *ret_name = slash ? slash + 1 : path;
        if (!(*ret_name)[0] || (slash && (size_t) (slash - path) >= sizeof(directory)))
                return -EINVAL;
        if (!slash) {
                fd = fcntl(nodes->dev_fd, F_DUPFD_CLOEXEC, 3);
                return fd < 0 ? -errno : fd;
        }
        (void) snprintf(directory, sizeof(directory), "%.*s", (int) (slash - path), path);
        if (!makes)
                return open_no_symlinks(nodes->dev_fd, directory, O_PATH | O_DIRECTORY, 0);
        return make_path_at(nodes->dev_fd, directory, true, 0755);
}

static bool is_node_of(const struct stat *st, const LiveDevice *device) {
        return (device->type == 'c' ? S_ISCHR(st->st_mode) : S_ISBLK(st->st_mode)) &&
               st->st_rdev == makedev(device->major, device->minor);
}

/* 1: the node exists; 0: nothing exists; -EEXIST: something that is not a device; -errno, also from
 * the parent. 'ret_is_other': another device. */
static int look_up_node(const DeviceNodes *nodes, const LiveDevice *device, bool makes,
                        int *ret_parent_fd, const char **ret_name, bool *ret_is_other) {
        struct stat st;

        *ret_is_other = false;
        *ret_parent_fd = open_parent(nodes, device, makes, ret_name);
        if (*ret_parent_fd < 0)
                return makes || *ret_parent_fd != -ENOENT ? *ret_parent_fd : 0;
        if (fstatat(*ret_parent_fd, *ret_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (is_node_of(&st, device))
                return 1;
        *ret_is_other = S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode);
        return *ret_is_other ? 0 : -EEXIST;
}

/* ---- nodes of the container ---- */

/* If the container replaces the node in between, only a file of the container is affected. */
static int make_node(int parent_fd, const char *name, const LiveDevice *device) {
        mode_t type = device->type == 'c' ? S_IFCHR : S_IFBLK;
        dev_t number = makedev(device->major, device->minor);
        cleanup_close int fd = -EBADF;
        struct stat st;

        (void) umask(0);
        if (mknodat(parent_fd, name, type | (device->mode & 0777), number) < 0)
                return -errno;
        fd = openat(parent_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!is_node_of(&st, device))
                return -EBUSY;
        return fchownat(fd, "", device->uid, device->gid, AT_EMPTY_PATH) < 0 ? -errno : 0;
}

static int bind_node(int parent_fd, const char *name, int clone_fd) {
        cleanup_close int fd =
                openat(parent_fd, name, O_CREAT | O_EXCL | O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0600);

        if (fd < 0)
                return -errno;
        return attach_mount(clone_fd, fd);
}

/* Also removes a mount on the node. */
static int remove_node(const DeviceNodes *nodes, int parent_fd, const char *name) {
        /* umount2() accepts no directory descriptor, and /proc belongs to the container. */
        if (nodes->are_bound &&
            (fchdir(parent_fd) < 0 ||
             (umount2(name, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL)))
                return -errno;
        return unlink_if_present_at(parent_fd, name);
}

int device_node_create(const DeviceNodes *nodes, const LiveDevice *device, int clone_fd) {
        cleanup_close int parent_fd = -EBADF;
        const char *name;
        bool is_other;
        int r;

        if (nodes->are_nodes)
                return 0;
        r = look_up_node(nodes, device, true, &parent_fd, &name, &is_other);
        if (r != 0)
                return r < 0 ? r : 0;
        if (is_other)
                r = remove_node(nodes, parent_fd, name);
        if (r < 0)
                return r;
        return nodes->are_bound ? bind_node(parent_fd, name, clone_fd)
                                : make_node(parent_fd, name, device);
}

int device_node_remove(const DeviceNodes *nodes, const LiveDevice *device) {
        cleanup_close int parent_fd = -EBADF;
        const char *name;
        bool is_other;
        int r;

        if (nodes->are_nodes)
                return 0;
        r = look_up_node(nodes, device, false, &parent_fd, &name, &is_other);
        if (r <= 0)
                return r == -EEXIST ? 0 : r;
        return remove_node(nodes, parent_fd, name);
}
