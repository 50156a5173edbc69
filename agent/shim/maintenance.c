/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/maintenance.h"

#include "agent/shim/mountinfo.h"
#include "agent/shim/mounts.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"
#include "common/selinux.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>

enum {
        SYNCED_NAMES_MAX = 16,
        KUBELET_MODE = 0750,
};

#define PLUGINS_END_USEC (2 * USEC_PER_SEC)

static const struct timespec moment = { .tv_nsec = 5000000 };

/* 1: 'path' (without links) is a mount point, and '*ret_shared' its propagation; 0: it is not
 * one. */
static int find_mount(const char *path, bool *ret_shared) {
        cleanup_mountinfo MountInfo info = { 0 };
        MountPoint mount_point;
        int r = mountinfo_load(&info), found = 0;

        if (r < 0)
                return r;
        while (mountinfo_next(&info, &mount_point)) {
                if (streq(mount_point.path, path)) {
                        *ret_shared = mount_point.shared;
                        found = 1;
                }
        }
        return found;
}

/* 1: the directory is empty and on a tmpfs; 0: it is not. */
static int is_empty_in_memory(const char *path) {
        cleanup_closedir DIR *dir = opendir(path);
        const struct dirent *entry;
        struct statfs fs;

        if (!dir || fstatfs(dirfd(dir), &fs) < 0)
                return -errno;
        if (fs.f_type != TMPFS_MAGIC)
                return 0;
        while ((entry = readdir(dir)))
                if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
                        return 0;
        return 1;
}

/* The label of the file system is that of its root directory, because policies do not define a
 * label for it; a category may contain a comma. */
static char *root_label_option(const char *path) {
        cleanup_close int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        cleanup_free char *label = NULL;

        if (!selinux_is_enabled() || fd < 0 || selinux_label_get(fd, &label) < 0)
                return strdup("");
        return text_format(",rootcontext=\"%s\"", label);
}

/* 1: mounted; 0: this directory or kernel is not suitable. */
static int mount_without_swap(const char *path) {
        cleanup_free char *label = NULL, *data = NULL;
        struct statvfs space;
        int r = is_empty_in_memory(path);

        if (r <= 0)
                return r;
        if (statvfs(path, &space) < 0)
                return -errno;
        label = root_label_option(path);
        data = !label ? NULL
                      : text_format("noswap,mode=0700,size=%" PRIu64 ",nr_inodes=%" PRIu64 "%s",
                                    (uint64_t) space.f_blocks * space.f_frsize,
                                    (uint64_t) space.f_files, label);
        if (!data)
                return -ENOMEM;
        return mount("mainstay", path, "tmpfs", space.f_flag & (MS_NOSUID | MS_NODEV | MS_NOEXEC),
                     data) >= 0;
}

static int make_private_mount(const char *directory) {
        cleanup_free char *real = NULL;
        bool shared = false;
        int r = mkdir_parents_at(AT_FDCWD, directory, 0755);

        if (r < 0)
                return r;
        if (chmod(directory, 0700) < 0)
                return -errno;
        real = realpath(directory, NULL);
        if (!real)
                return -errno;
        r = find_mount(real, &shared);
        if (r < 0)
                return r;
        if (r == 0) {
                r = mount_without_swap(real);
                if (r < 0 || (r == 0 && mount(real, real, NULL, MS_BIND, NULL) < 0))
                        return r < 0 ? r : -errno;
                shared = true;
        }
        return shared && mount(NULL, real, NULL, MS_PRIVATE, NULL) < 0 ? -errno : 0;
}

int prepare_run_directory(const char *directory, Error *reterr) {
        int r = make_private_mount(directory);

        if (r < 0)
                return error_setf(reterr, -r, "cannot make '%s' a private mount: %s", directory,
                                  strerror(-r));
        return 0;
}

/* Whether mounts that are made below 'path' (without links) propagate to other mount namespaces. */
static int is_shared(const char *path) {
        cleanup_mountinfo MountInfo info = { 0 };
        MountPoint mount_point;
        size_t longest = 0;
        int r = mountinfo_load(&info);
        bool shared = false;

        if (r < 0)
                return r;
        while (mountinfo_next(&info, &mount_point)) {
                size_t n = strlen(mount_point.path);

                if (n < longest || strncmp(path, mount_point.path, n) != 0 ||
                    (n > 1 && path[n] != '/' && path[n] != '\0'))
                        continue;
                longest = n;
                shared = mount_point.shared;
        }
        return shared;
}

static int make_shared_mount(const char *directory) {
        cleanup_free char *real = NULL;
        struct stat st;
        int r;

        if (mkdir(directory, KUBELET_MODE) < 0 && errno != EEXIST)
                return -errno;
        real = realpath(directory, NULL);
        if (!real || stat(real, &st) < 0)
                return -errno;
        if (!S_ISDIR(st.st_mode))
                return -ENOTDIR;
        r = is_shared(real);
        if (r != 0)
                return r;
        return mount(real, real, NULL, MS_BIND | MS_REC, NULL) < 0 ||
                               mount(NULL, real, NULL, MS_SHARED | MS_REC, NULL) < 0
                       ? -errno
                       : 0;
}

void prepare_kubelet_directory(const char *directory) {
        int r = make_shared_mount(directory);

        if (r < 0)
                log_warning("Cannot make '%s' a shared mount: %s; volumes of CSI drivers do not "
                            "reach pods",
                            directory, strerror(-r));
}

/* Killed processes need a moment to exit. */
int shim_remove_cgroup(const char *cgroup) {
        int r = cgroup_kill(cgroup);

        if (r < 0)
                return r;
        for (unsigned i = 0; i < 200; i++) {
                r = cgroup_remove(cgroup);
                if (r != -EBUSY)
                        return r;
                (void) nanosleep(&moment, NULL);
        }
        return -EBUSY;
}

static int remove_directory(const char *directory, bool is_kept, Error *reterr) {
        int r = mounts_undo(directory);

        if (r >= 0)
                r = is_kept ? remove_contents_at(AT_FDCWD, directory)
                            : remove_tree_at(AT_FDCWD, directory);
        if (r == -ELOOP) /* a container created a link there: it is not the pod's directory */
                return 0;
        if (r < 0)
                return error_setf(reterr, -r, "cannot remove '%s': %s", directory, strerror(-r));
        return 0;
}

/* A network plugin is not killed with its shim: an interrupted plugin may leave something that no
 * later run finds, such as an address that host-local has reserved before recording its owner. The
 * shim's other processes die with it. */
static void wait_for_plugins(char **shim_cgroups) {
        uint64_t deadline = now_awake_usec() + PLUGINS_END_USEC;

        strv_foreach(cgroup, shim_cgroups)
                while (cgroup_has_processes(*cgroup) && now_awake_usec() < deadline)
                        (void) nanosleep(&moment, NULL);
}

static int remove_cgroups(char **cgroups, Error *reterr) {
        int r = 0;

        strv_foreach(cgroup, cgroups) {
                int q = shim_remove_cgroup(*cgroup);

                if (q < 0 && r >= 0)
                        r = error_setf(reterr, -q, "cannot remove the cgroup '%s': %s", *cgroup,
                                       strerror(-q));
        }
        return r;
}

/* In the meantime, a child of the agent that syncs files of this directory may create a name in it
 * (common/fsync-queue.h), at most one per pass. Cleanup does not wait for that child, because a
 * disk may hang. */
static int remove_directory_while_synced(const char *directory, Error *reterr) {
        int r = -ENOTEMPTY;

        for (unsigned i = 0; i < SYNCED_NAMES_MAX && r == -ENOTEMPTY; i++)
                r = remove_directory(directory, /* is_kept= */ false, NULL);
        return r < 0 ? error_setf(reterr, -r, "cannot remove '%s': %s", directory, strerror(-r))
                     : 0;
}

int remove_pod_remains(const PodRemains *remains, Error *reterr) {
        int r, q;

        wait_for_plugins(remains->shim_cgroups);
        r = remove_cgroups(remains->shim_cgroups, reterr);
        q = remove_cgroups(remains->cgroups, r >= 0 ? reterr : NULL);
        if (r >= 0)
                r = q;
        /* These directories show the next agent that processes may be left, so they are removed
         * last. */
        if (r < 0)
                return r;
        if (remains->emptied)
                r = remove_directory(remains->emptied, /* is_kept= */ true, reterr);
        for (char *const *directory = remains->directories; *directory; directory++) {
                q = remove_directory(*directory, /* is_kept= */ false, r >= 0 ? reterr : NULL);

                if (r >= 0)
                        r = q;
        }
        q = remains->synced ? remove_directory_while_synced(remains->synced, r >= 0 ? reterr : NULL)
                            : 0;
        return r >= 0 ? q : r;
}
