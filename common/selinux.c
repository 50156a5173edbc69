/* SPDX-License-Identifier: Apache-2.0 */
/* libselinux is not used: it would read the system's configuration before main() in every shim, and
 * needs a regular expression library. A few files and attributes suffice. */

#include "common/selinux.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/xattr.h>

enum {
        LABEL_MAX = 4096,
        LABEL_DEPTH_MAX = 256, /* deeper trees are malicious; a level costs two descriptors */
};

static const char attribute[] = "security.selinux";

/* Until a policy is loaded, every label is "kernel". */
bool selinux_is_enabled(void) {
        cleanup_close int fd = -EBADF;
        cleanup_free char *label = NULL;

        if (access("/sys/fs/selinux/enforce", F_OK) < 0)
                return false;
        fd = open("/proc/thread-self/attr/current", O_RDONLY | O_CLOEXEC);
        return fd >= 0 && read_stream(fd, LABEL_MAX, &label, NULL) >= 0 && strchr(label, ':');
}

/* An empty string resets the label. The kernel accepts at most a page. */
static int write_own_process_label(const char *path, const char *label) {
        const char *value = label ? label : "";
        size_t size = strlen(value) + 1;
        cleanup_close int fd = -EBADF;

        if (size > LABEL_MAX)
                return -EINVAL;
        fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        return write(fd, value, size) < 0 ? -errno : 0;
}

/* selinuxfs offers the same check, but a confined service cannot write to it. The label is
 * validated by setting it for exec, which is undone before a process is started. */
int selinux_check_label(const char *label) {
        static const char path[] = "/proc/thread-self/attr/exec";
        int r = write_own_process_label(path, label), q = write_own_process_label(path, NULL);

        return r < 0 ? r : q;
}

int selinux_create_as(const char *label) {
        return write_own_process_label("/proc/thread-self/attr/fscreate", label);
}

/* Attributes cannot be read through an O_PATH descriptor, but through its name in /proc. */
static void name_of_fd(int fd, char ret[64]) {
        (void) snprintf(ret, 64, "/proc/self/fd/%d", fd);
}

int selinux_label_get(int fd, char **ret) {
        cleanup_free char *label = calloc(1, LABEL_MAX + 1);
        char name[64];

        if (!label)
                return -ENOMEM;
        name_of_fd(fd, name);
        if (getxattr(name, attribute, label, LABEL_MAX) < 0)
                return -errno;
        *ret = TAKE_PTR(label);
        return 0;
}

static bool has_selinux_label(int fd, const char *label) {
        cleanup_free char *present = NULL;

        return selinux_label_get(fd, &present) >= 0 && streq(strna(present), label);
}

static int set_selinux_label(int fd, const char *label) {
        char name[64];

        if (has_selinux_label(fd, label))
                return 0;
        name_of_fd(fd, name);
        if (setxattr(name, attribute, label, strlen(label) + 1, 0) < 0)
                return errno == EOPNOTSUPP ? 0 : -errno;
        return 0;
}

static int label_tree_below(int dir_fd, const char *label, dev_t device, unsigned depth);

static int label_tree_entry(int dir_fd, const char *name, const char *label, dev_t device,
                            unsigned depth) {
        cleanup_close int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;
        int r = 0;

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_dev != device)
                return 0;
        if (S_ISDIR(st.st_mode))
                r = depth < LABEL_DEPTH_MAX ? label_tree_below(fd, label, device, depth + 1)
                                            : -ELOOP;
        return r < 0 ? r : set_selinux_label(fd, label);
}

static int label_tree_below(int dir_fd, const char *label, dev_t device, unsigned depth) {
        int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = 0, r;
        cleanup_closedir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        const struct dirent *entry;

        if (!dir) {
                r = -errno;
                close_fd(copy);
                return r;
        }
        while ((r = read_directory_entry(dir, &entry)) > 0) {
                r = label_tree_entry(dir_fd, entry->d_name, label, device, depth);
                if (r < 0 && result >= 0)
                        result = r;
        }
        return result < 0 ? result : r;
}

int selinux_label_tree(const char *path, const char *label) {
        cleanup_close int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (has_selinux_label(fd, label))
                return 0;
        return label_tree_entry(AT_FDCWD, path, label, st.st_dev, 0);
}
