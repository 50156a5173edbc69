/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/subpath.h"

#include "agent/shim/mountinfo.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/selinux.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* One step down. 'name' is neither "." nor "..". A new file gets the mode whatever the umask is;
 * chmod() could change a file that was put in its place. */
static int open_or_make_component(int dir_fd, const char *name, bool directory, mode_t mode) {
        cleanup_close int made = -EBADF;
        mode_t mask = umask(0);
        int fd;

        if (directory)
                (void) mkdirat(dir_fd, name, mode);
        else
                made = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                              mode);
        (void) umask(mask);
        fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | (directory ? O_DIRECTORY : 0));
        return fd < 0 ? -errno : fd;
}

int make_path_at(int dir_fd, const char *path, bool directory, mode_t mode) {
        cleanup_free char *copy = strdup(path);
        cleanup_close int at = openat(dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        char *rest = copy, *name;

        if (!copy)
                return -ENOMEM;
        if (at < 0)
                return -errno;
        while ((name = strsep(&rest, "/"))) {
                bool last = !rest || rest[strspn(rest, "/")] == '\0';
                int next;

                if (name[0] == '\0' || streq(name, "."))
                        continue;
                if (streq(name, ".."))
                        return -EXDEV;
                next = open_or_make_component(at, name, directory || !last,
                                              last ? mode : mode | 0111);
                if (next < 0)
                        return next;
                close_fd(at);
                at = next;
        }
        return TAKE_FD(at);
}

static int open_below(int root_fd, const char *path) {
        struct open_how how = {
                .flags = O_PATH | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
        };
        long fd;

        do
                fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
        while (fd < 0 && (errno == EAGAIN || errno == EINTR));
        return fd < 0 ? -errno : (int) fd;
}

/* Opens the existing part of a path, following links that stay beneath the root; '*ret_rest' is the
 * missing part. */
static int open_existing(int root_fd, const char *path, const char **ret_rest) {
        size_t length = strlen(path);

        for (;;) {
                cleanup_free char *prefix = strndup(path, length);
                int fd;

                if (!prefix)
                        return -ENOMEM;
                fd = open_below(root_fd, prefix[0] ? prefix : ".");
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
        fd = open_below(root_fd, *rest ? rest : ".");
        if (fd == -ENOENT)
                fd = make_beneath(root_fd, rest);
        if (fd < 0)
                return error_setf(reterr, -fd, "cannot open '%s' beneath '%s': %s", rest, root,
                                  strerror(-fd));
        return fd;
}
