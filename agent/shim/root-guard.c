/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime waits while this runs. This process is not in the container's PID namespace, so no
 * process there can trace it. No other mount namespace has these mounts, so nobody can replace
 * anything that is examined here except the files of volumes. */

#include "agent/shim/root-guard.h"

#include "agent/shim/hook-state.h"
#include "agent/shim/mountinfo.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/privileges.h"

#include <ctype.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>

typedef struct RootGuard {
        HookState hook;
        dev_t node_devices; /* the file system at the node's /dev */
        int root_fd;        /* in the container's mount namespace, like all following members */
        int proc_fd;
        int masks_fd;
} RootGuard;

static void root_guard_done(RootGuard *guard) {
        hook_state_done(&guard->hook);
        close_fd(guard->root_fd);
        close_fd(guard->proc_fd);
        close_fd(guard->masks_fd);
}

static bool is_own_user_namespace(int fd) {
        struct stat own, other;

        return stat("/proc/self/ns/user", &own) == 0 && fstat(fd, &other) == 0 &&
               own.st_ino == other.st_ino;
}

/* Acts as the container's root user, if the container has a user namespace, so that created files
 * belong to that user. */
static int enter_container(const RootGuard *guard) {
        cleanup_close int users_fd = hook_state_open_namespace(&guard->hook, "user");
        cleanup_close int mounts_fd = hook_state_open_namespace(&guard->hook, "mnt");
        int r = 0;

        if (users_fd < 0 || mounts_fd < 0)
                return MIN(users_fd, mounts_fd);
        if (!is_own_user_namespace(users_fd))
                r = setns(users_fd, CLONE_NEWUSER) < 0 ? -errno : privileges_set_ids(0, 0);
        if (r >= 0 && setns(mounts_fd, CLONE_NEWNS) < 0)
                r = -errno;
        return r;
}

/* ---- paths of the kernel ---- */

static bool is_on(int fd, long type) {
        struct statfs fs;

        return fstatfs(fd, &fs) == 0 && (long) fs.f_type == type;
}

/* Opens the path in procfs, even if something is mounted over it. A link in the path belongs to a
 * volume, and its target has a separate entry. -ENOENT: the kernel has no such file. */
static int open_kernel_path(const RootGuard *guard, const char *path) {
        static const char proc[] = "/proc/";
        bool is_proc = strncmp(path, proc, strlen(proc)) == 0;
        int fd = open_no_symlinks(is_proc ? guard->proc_fd : guard->root_fd,
                                  path + (is_proc ? strlen(proc) : 1), O_PATH, 0);

        if (fd == -ENOTDIR || fd == -ELOOP)
                return -ENOENT;
        if (fd >= 0 && !is_on(fd, PROC_SUPER_MAGIC) && !is_on(fd, SYSFS_MAGIC)) {
                close_fd(fd);
                return -ENOENT;
        }
        return fd;
}

static int attach_to(int mount_fd, int target_fd, uint64_t attributes) {
        struct mount_attr set = { .attr_set = attributes };

        if (mount_setattr(mount_fd, "", AT_EMPTY_PATH, &set, sizeof(set)) < 0 ||
            move_mount(mount_fd, "", target_fd, "",
                       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
                return -errno;
        return 0;
}

static int make_read_only(const RootGuard *guard, const char *path) {
        cleanup_close int target_fd = open_kernel_path(guard, path), mount_fd = -EBADF;

        if (target_fd < 0)
                return target_fd == -ENOENT ? 0 : target_fd;
        mount_fd = open_tree(target_fd, "",
                             AT_EMPTY_PATH | AT_RECURSIVE | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        return mount_fd < 0 ? -errno : attach_to(mount_fd, target_fd, MOUNT_ATTR_RDONLY);
}

static int mask_path(const RootGuard *guard, const char *path) {
        cleanup_close int target_fd = open_kernel_path(guard, path), mount_fd = -EBADF;
        struct stat st;

        if (target_fd < 0)
                return target_fd == -ENOENT ? 0 : target_fd;
        if (fstat(target_fd, &st) < 0)
                return -errno;
        mount_fd = open_tree(guard->masks_fd, S_ISDIR(st.st_mode) ? "directory" : "file",
                             OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
        return mount_fd < 0 ? -errno
                            : attach_to(mount_fd, target_fd,
                                        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
                                                MOUNT_ATTR_NOEXEC);
}

/* A file and a directory without content. Some kernels copy only mounts that are in the mount tree;
 * this one is attached over /proc until all masks are in place. */
static int attach_masks(RootGuard *guard) {
        cleanup_close int context = fsopen("tmpfs", FSOPEN_CLOEXEC), file_fd = -EBADF;

        if (context < 0 ||
            fsconfig(context, FSCONFIG_SET_STRING, "source", "mainstay-mask", 0) < 0 ||
            fsconfig(context, FSCONFIG_SET_STRING, "mode", "0555", 0) < 0 ||
            fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return -errno;
        guard->masks_fd = fsmount(context, FSMOUNT_CLOEXEC, 0);
        if (guard->masks_fd < 0 || mkdirat(guard->masks_fd, "directory", 0555) < 0)
                return -errno;
        file_fd = openat(guard->masks_fd, "file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
        return file_fd < 0 ? -errno : attach_to(guard->masks_fd, guard->proc_fd, 0);
}

static int detach_masks(const RootGuard *guard) {
        cleanup_free char *proc = path_join(guard->hook.rootfs, "proc");

        if (!proc)
                return -ENOMEM;
        return umount2(proc, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
}

static int for_each_path(const RootGuard *guard, const char *section, const char *name,
                         int (*handle)(const RootGuard *, const char *), Error *reterr) {
        json_t *paths = json_object_get(json_object_get(guard->hook.config, section), name), *item;
        size_t i;

        json_array_foreach(paths, i, item) {
                const char *path = json_string_value(item);
                int r = path && path[0] == '/' ? handle(guard, path) : -EBADMSG;

                if (r < 0)
                        return error_setf(reterr, -r, "cannot protect '%s': %s", strna(path),
                                          strerror(-r));
        }
        return 0;
}

static int protect_kernel_paths(RootGuard *guard, Error *reterr) {
        int r = for_each_path(guard, "linux", "readonlyPaths", make_read_only, reterr);

        if (r < 0)
                return r;
        r = attach_masks(guard);
        if (r < 0)
                return error_setf(reterr, -r, "cannot make masks for paths of the kernel: %s",
                                  strerror(-r));
        r = for_each_path(guard, "mainstay", "maskedPaths", mask_path, reterr);
        if (r < 0)
                return r;
        r = detach_masks(guard);
        return r < 0 ? error_setf(reterr, -r, "cannot unmount masks: %s", strerror(-r)) : 0;
}

/* ---- mounts over processes ---- */

/* The runtime writes to /proc/self of the container, for example the label that its process gets. A
 * mount there would redirect these writes to other files of the kernel. No such mount is
 * configured, but the runtime makes one if a link in a volume is replaced after the runtime has
 * checked the path. */
static int check_processes(const RootGuard *guard, Error *reterr) {
        cleanup_free char *proc = path_join(guard->hook.rootfs, "proc/");
        cleanup_mountinfo MountInfo info = { 0 };
        MountPoint mount_point;
        int r = proc ? mountinfo_load(&info) : -ENOMEM;

        while (r >= 0 && mountinfo_next(&info, &mount_point)) {
                const char *rest = mount_point.path + strlen(proc);

                if (strncmp(mount_point.path, proc, strlen(proc)) == 0 &&
                    isdigit((unsigned char) *rest))
                        r = error_setf(reterr, EINVAL,
                                       "a link of a volume leads a mount to '/proc/%s'", rest);
        }
        return r;
}

/* ---- the working directory ---- */

static int explain_directory(int r, const char *path, Error *reterr) {
        if (r == -ELOOP)
                return error_setf(reterr, ELOOP,
                                  "the working directory '%s' is behind a link that leads out of "
                                  "the container, or to itself",
                                  path);
        return error_setf(reterr, -r, "cannot open or make the working directory '%s': %s", path,
                          strerror(-r));
}

/* The prefix of a path, whose last component may be missing in 'parent_fd'. */
static int open_or_make_in_container(int root_fd, int parent_fd, const char *prefix,
                                     const char *name) {
        int fd = open_in_container(root_fd, prefix, O_PATH | O_DIRECTORY);

        if (fd != -ENOENT)
                return fd;
        if (mkdirat(parent_fd, name, 0755) < 0 && errno != EEXIST)
                return -errno;
        return open_in_container(root_fd, prefix, O_PATH | O_DIRECTORY);
}

static int prepare_directory(const RootGuard *guard, const char *path, Error *reterr) {
        cleanup_free char *prefix = strdup(path);
        cleanup_close int at = open_in_container(guard->root_fd, "/", O_PATH | O_DIRECTORY);
        const char *end = path;

        if (!prefix || at < 0)
                return prefix ? at : -ENOMEM;
        (void) umask(022);
        while (*(end += strspn(end, "/"))) {
                const char *name = prefix + (end - path);
                int fd;

                end += strcspn(end, "/");
                memcpy(prefix, path, (size_t) (end - path));
                prefix[end - path] = '\0';
                fd = open_or_make_in_container(guard->root_fd, at, prefix, name);
                if (fd < 0)
                        return explain_directory(fd, path, reterr);
                close_fd(at);
                at = fd;
                if (is_on(at, PROC_SUPER_MAGIC))
                        return error_setf(reterr, EINVAL,
                                          "the working directory '%s' leads into /proc", path);
        }
        return 0;
}

/* ---- terminals ---- */

static int count_mounts_at(const char *path, unsigned *ret) {
        cleanup_mountinfo MountInfo info = { 0 };
        MountPoint mount_point;
        int r = mountinfo_load(&info);

        for (*ret = 0; r >= 0 && mountinfo_next(&info, &mount_point);)
                *ret += streq(mount_point.path, path);
        return r;
}

/* The runtime opens /dev/ptmx and /dev/pts/N, and creates /dev/console. If /dev is the node's, a
 * container that could replace them already controls the node. */
static int check_terminal(const RootGuard *guard, Error *reterr) {
        cleanup_free char *path = path_join(guard->hook.rootfs, "dev");
        cleanup_close int dev_fd = open_no_symlinks(guard->root_fd, "dev", O_PATH, 0);
        cleanup_close int pts_fd = open_no_symlinks(guard->root_fd, "dev/pts", O_PATH, 0);
        struct stat st;
        unsigned n = 0;
        int r = path ? count_mounts_at(path, &n) : -ENOMEM;

        if (r < 0)
                return r;
        if (dev_fd >= 0 && pts_fd >= 0 && fstat(dev_fd, &st) == 0 &&
            (n == 1 || st.st_dev == guard->node_devices) && is_on(pts_fd, DEVPTS_SUPER_MAGIC))
                return 0;
        return error_setf(reterr, EINVAL,
                          "a volume is mounted at /dev or /dev/pts of a container with a terminal; "
                          "mount it elsewhere, or unset 'tty'");
}

/* ---- the whole hook ---- */

static int open_root(RootGuard *guard, Error *reterr) {
        struct stat st;
        int r;

        guard->node_devices = stat("/dev", &st) < 0 ? 0 : st.st_dev;
        r = enter_container(guard);
        if (r < 0)
                return error_setf(reterr, -r, "cannot enter the container: %s", strerror(-r));
        guard->root_fd = open_no_symlinks(AT_FDCWD, guard->hook.rootfs, O_PATH | O_DIRECTORY, 0);
        if (guard->root_fd >= 0)
                guard->proc_fd = open_no_symlinks(guard->root_fd, "proc", O_PATH | O_DIRECTORY, 0);
        if (guard->proc_fd < 0 || !is_on(guard->proc_fd, PROC_SUPER_MAGIC))
                return error_setf(reterr, EINVAL, "the runtime has not mounted /proc in '%s'",
                                  guard->hook.rootfs);
        return 0;
}

static int guard_root(RootGuard *guard, Error *reterr) {
        json_t *process = json_object_get(guard->hook.config, "process");
        int r = open_root(guard, reterr);

        if (r >= 0)
                r = check_processes(guard, reterr);
        if (r >= 0 && json_is_true(json_object_get(process, "terminal")))
                r = check_terminal(guard, reterr);
        if (r >= 0)
                r = prepare_directory(guard, strna(json_text(process, "cwd")), reterr);
        return r < 0 ? r : protect_kernel_paths(guard, reterr);
}

int root_guard(int state_fd, Error *reterr) {
        cleanup_with(root_guard_done)
                RootGuard guard = { .root_fd = -EBADF, .proc_fd = -EBADF, .masks_fd = -EBADF };
        int r = hook_state_load(state_fd, &guard.hook, reterr);

        if (r < 0)
                return r;
        return guard_root(&guard, reterr);
}
