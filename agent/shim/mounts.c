/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/mounts.h"

#include "agent/shim/fstab.h"
#include "agent/shim/hostpath.h"
#include "agent/shim/image-content.h"
#include "agent/shim/mountinfo.h"
#include "agent/shim/nfs-mount.h"
#include "agent/shim/overlay.h"
#include "agent/shim/subpath.h"
#include "agent/shim/volume-group.h"
#include "common/cleanup.h"
#include "common/error.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/selinux.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* Mount points in volumes that are read-only for containers, so that the runtime cannot create
 * them. */

/* The target is a key of the volume: the runtime mounts over the file to which the link leads. */
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

/* It gets the volume's label. */
static int make_in_volume(int root_fd, const char *path, bool is_directory) {
        cleanup_creating SelinuxCreating creating = false;
        cleanup_free char *label = NULL;

        if (selinux_is_enabled() && selinux_label_get(root_fd, &label) >= 0)
                creating = selinux_create_as(label) >= 0;
        return make_path_at(root_fd, path, is_directory, is_directory ? 0755 : 0644);
}

/* Creates a mount point for 'source' at 'target', which is below the volume 'root': a directory, or
 * an empty file if the source is not a directory. Existing files stay; no link is followed, except
 * that the target itself may be a key of the volume. 0 or -errno. */
static int mount_point_make(const char *source, const char *target, const char *root,
                            Error *reterr) {
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

/* A bind mount is cloned into a descriptor, gets its flags, and only then is attached: so it never
 * has too many permissions while it is visible, and neither path is resolved twice. */

enum {
        OPTIONS_MAX = 4095, /* limit of mount(2): a page including the NUL */
        UNDO_ROUNDS = 16,   /* mounts may be stacked */
};

static uint64_t mount_attributes_of(unsigned long flags) {
        static const struct {
                unsigned long flag;
                uint64_t attribute;
        } map[] = {
                { MS_RDONLY, MOUNT_ATTR_RDONLY },
                { MS_NOSUID, MOUNT_ATTR_NOSUID },
                { MS_NODEV, MOUNT_ATTR_NODEV },
                { MS_NOEXEC, MOUNT_ATTR_NOEXEC },
                { MS_NODIRATIME, MOUNT_ATTR_NODIRATIME },
                { MS_NOSYMFOLLOW, MOUNT_ATTR_NOSYMFOLLOW },
        };
        uint64_t attributes = 0;

        for (size_t i = 0; i < N_ELEMENTS(map); i++)
                if (flags & map[i].flag)
                        attributes |= map[i].attribute;
        return attributes;
}

static int set_attributes(int mount_fd, const MountSpec *spec) {
        struct mount_attr attributes = { .attr_set = mount_attributes_of(spec->flags) };
        cleanup_close int users_fd = -EBADF;
        struct mount_attr propagation = { .propagation = spec->propagation };

        if (spec->idmap) {
                users_fd = open(spec->idmap, O_RDONLY | O_CLOEXEC);
                if (users_fd < 0)
                        return -errno;
                attributes.attr_set |= MOUNT_ATTR_IDMAP;
                attributes.userns_fd = (uint64_t) users_fd;
        }
        if (attributes.attr_set != 0 &&
            mount_setattr(mount_fd, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) < 0)
                return -errno;
        if (propagation.propagation != 0 &&
            mount_setattr(mount_fd, "", AT_EMPTY_PATH | (spec->propagate_all ? AT_RECURSIVE : 0U),
                          &propagation, sizeof(propagation)) < 0)
                return -errno;
        return 0;
}

static int open_mount_source(const MountSpec *spec, Error *reterr) {
        int fd;

        if (spec->beneath)
                return subpath_open(spec->source, spec->beneath, reterr);
        if (spec->hostpath_type)
                return hostpath_open_checked(spec->source, spec->hostpath_type, reterr);
        fd = open(spec->source, O_PATH | O_CLOEXEC);
        if (fd < 0)
                return error_setf(reterr, errno, "cannot open '%s': %s", spec->source,
                                  strerror(errno));
        return fd;
}

static int open_mount_target(const MountSpec *spec, const char *root, bool directory,
                             Error *reterr) {
        cleanup_close int root_fd = -EBADF;
        const char *rest;
        int fd;

        if (!path_is_beneath(spec->target, root) || streq(spec->target, root))
                return error_setf(reterr, EXDEV, "the mount point '%s' is not below '%s'",
                                  spec->target, root);
        rest = spec->target + strlen(root);
        root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        fd = root_fd < 0 ? -errno
                         : make_path_at(root_fd, rest + strspn(rest, "/"), directory,
                                        directory ? 0755 : 0644);
        if (fd < 0)
                return error_setf(reterr, -fd, "cannot make the mount point '%s': %s", spec->target,
                                  strerror(-fd));
        return fd;
}

static int mount_bind(const MountSpec *spec, const char *root, Error *reterr) {
        cleanup_close int source_fd = open_mount_source(spec, reterr), target_fd = -EBADF;
        cleanup_close int mount_fd = -EBADF;
        struct stat st;
        int r;

        if (source_fd < 0)
                return source_fd;
        if (fstat(source_fd, &st) < 0)
                return -errno;
        target_fd = open_mount_target(spec, root, S_ISDIR(st.st_mode), reterr);
        if (target_fd < 0)
                return target_fd;
        mount_fd = open_tree(source_fd, "",
                             AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC |
                                     (spec->recursive ? AT_RECURSIVE : 0U));
        r = mount_fd < 0 ? -errno : set_attributes(mount_fd, spec);
        if (r >= 0 && move_mount(mount_fd, "", target_fd, "",
                                 MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
                r = -errno;
        if (r == -EINVAL && spec->idmap)
                return error_setf(reterr, EINVAL,
                                  "cannot mount '%s' with the pod's user namespace: its file "
                                  "system cannot map IDs",
                                  spec->source);
        if (r < 0)
                return error_setf(reterr, -r, "cannot mount '%s' on '%s': %s", spec->source,
                                  spec->target, strerror(-r));
        return 0;
}

/* Omits a tmpfs's noswap option if the kernel does not support it: Linux before 6.4. */
static int mount_file_system(const MountSpec *spec, const char *target) {
        static const char no_swap[] = ",noswap";
        const char *option = NULL;
        cleanup_free char *data = NULL;

        if (mount(spec->source, target, spec->type, spec->flags, spec->data) >= 0)
                return 0;
        if (errno == EINVAL && spec->data && streq(spec->type, "tmpfs"))
                option = strstr(spec->data, no_swap);
        if (!option)
                return -errno;
        data = text_format("%.*s%s", (int) (option - spec->data), spec->data,
                           option + strlen(no_swap));
        if (!data)
                return -ENOMEM;
        return mount(spec->source, target, spec->type, spec->flags, data) < 0 ? -errno : 0;
}

static int mount_new(const MountSpec *spec, const char *root, Error *reterr) {
        cleanup_close int target_fd = open_mount_target(spec, root, true, reterr);
        bool is_long = spec->data && strlen(spec->data) > OPTIONS_MAX;
        char target[sizeof("/proc/self/fd/4294967295")];
        int r = 0;

        if (target_fd < 0)
                return target_fd;
        (void) snprintf(target, sizeof(target), "/proc/self/fd/%d", target_fd);
        if (is_long && streq(spec->type, "overlay")) {
                r = overlay_mount(spec, mount_attributes_of(spec->flags), target_fd, reterr);
        } else {
                r = mount_file_system(spec, target);
                if (r < 0)
                        (void) error_setf(reterr, -r, "%s", strerror(-r));
        }
        /* The descriptor now refers to the directory below the mount, so the mode is set by path;
         * the path was just checked for links, and the directory belongs to the agent. */
        if (r >= 0 && spec->propagation != 0 &&
            mount(NULL, spec->target, NULL,
                  spec->propagation | (spec->propagate_all ? MS_REC : 0UL), NULL) < 0)
                r = error_setf(reterr, errno, "%s", strerror(errno));
        if (r >= 0 && spec->mode &&
            chmod(spec->target, (mode_t) (strtoul(spec->mode, NULL, 8) & 07777)) < 0)
                r = error_setf(reterr, errno, "%s", strerror(errno));
        if (r < 0)
                return error_prefixf(reterr, r, "cannot mount %s on '%s'", spec->type,
                                     spec->target);
        return 0;
}

static int label_mount_source(const MountSpec *spec, Error *reterr) {
        int r = selinux_label_tree(spec->source, spec->label);

        if (r < 0)
                return error_setf(reterr, -r, "cannot set the SELinux label of '%s' to '%s': %s",
                                  spec->source, spec->label, strerror(-r));
        return 0;
}

static int mount_nfs(const MountSpec *spec, const char *root, int network_fd, Error *reterr) {
        cleanup_close int fd = open_mount_target(spec, root, true, reterr);

        return fd < 0 ? fd : nfs_mount(spec->source, spec->target, spec->nfs, network_fd, reterr);
}

static int apply_mount(const MountSpec *spec, const char *root, int network_fd, Error *reterr) {
        FAIL_AT("mounts.apply");
        if (spec->label)
                return label_mount_source(spec, reterr);
        if (spec->group)
                return volume_set_fs_group(spec->source, spec->group, reterr);
        if (spec->copy)
                return image_content_copy(spec->copy, spec->source, spec->target, reterr);
        if (spec->mount_point)
                return mount_point_make(spec->source, spec->target, spec->mount_point, reterr);
        if (spec->nfs)
                return mount_nfs(spec, root, network_fd, reterr);
        return spec->bind ? mount_bind(spec, root, reterr) : mount_new(spec, root, reterr);
}

static int name_volume(const MountSpec *spec, int r, Error *reterr) {
        return spec->nfs ? error_prefixf(reterr, r, "MountVolume.SetUp failed for volume \"%s\" ",
                                         spec->volume)
                         : error_prefixf(reterr, r, "volume \"%s\"", spec->volume);
}

int mounts_apply(const char *fstab_path, const char *root, int network_fd, Error *reterr) {
        cleanup_fstab Fstab fstab = { 0 };
        int r = 0;

        if (access(fstab_path, F_OK) < 0 && errno == ENOENT)
                return 0;
        r = fstab_load(fstab_path, &fstab, reterr);
        for (size_t i = 0; r >= 0 && i < fstab.n; i++) {
                const MountSpec *spec = &fstab.mounts[i];

                r = apply_mount(spec, root, network_fd, reterr);
                if (r < 0 && spec->volume)
                        r = name_volume(spec, r, reterr);
        }
        if (r < 0)
                (void) mounts_undo(root);
        return r;
}

/* The kernel lists mount points with links resolved, and 'root' contains none. */
static int list_mounts_beneath(const char *root, char ***ret) {
        cleanup_mountinfo MountInfo info = { 0 };
        cleanup_strv char **paths = NULL;
        MountPoint mount_point;
        int r = mountinfo_load(&info);

        if (r < 0)
                return r;
        while (mountinfo_next(&info, &mount_point)) {
                if (path_is_beneath(mount_point.path, root))
                        r = strv_append(&paths, mount_point.path);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(paths);
        return 0;
}

int mounts_undo(const char *root) {
        cleanup_close int fd = open_no_symlinks(AT_FDCWD, root, O_PATH, 0);

        /* A link is not followed: nothing below its target was mounted for a pod, and the target
         * may be the node's root. */
        if (fd < 0)
                return fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP ? 0 : fd;
        for (unsigned round = 0; round < UNDO_ROUNDS; round++) {
                cleanup_strv char **paths = NULL;
                int r = list_mounts_beneath(root, &paths);

                if (r < 0)
                        return r;
                if (strv_length(paths) == 0)
                        return 0;
                /* Removing a mount with peers on the host would also remove those peers. */
                strv_foreach(path, paths)
                        (void) mount(NULL, *path, NULL, MS_PRIVATE, NULL);
                FAIL_AT("mounts.undo");
                for (size_t i = strv_length(paths); i > 0; i--)
                        (void) umount2(paths[i - 1], MNT_DETACH | UMOUNT_NOFOLLOW);
        }
        return -EBUSY;
}

int mounts_check_private(const char *path, Error *reterr) {
        cleanup_mountinfo MountInfo info = { 0 };
        cleanup_free char *real = realpath(path, NULL);
        MountPoint mount_point;
        size_t longest = 0;
        bool shared = false;
        int r = real ? mountinfo_load(&info) : -errno;

        if (r < 0)
                return error_prefixf(reterr, r, "%s", path);
        /* The last mount in the list is on top. */
        while (mountinfo_next(&info, &mount_point))
                if (path_is_beneath(real, mount_point.path) &&
                    strlen(mount_point.path) >= longest) {
                        longest = strlen(mount_point.path);
                        shared = mount_point.shared;
                }
        if (shared)
                return error_setf(reterr, EINVAL,
                                  "'%s' is on a mount that is shared with the host; has "
                                  "'mainstay-shim prepare' been run?",
                                  path);
        return 0;
}
