/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/subpath.h"

#include "agent/shim/mountinfo.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/selinux.h"
#include "common/utf8.h"

#include <fcntl.h>
#include <limits.h>
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

/* Describes a path component at which resolution stops. */
typedef struct BadComponent {
        char *path;            /* the path up to and including it, printable */
        char target[PATH_MAX]; /* the link's target, printable; "": not a link */
} BadComponent;

static void bad_component_done(BadComponent *bad) {
        free(bad->path);
}

static void read_link_beneath(int root_fd, BadComponent *bad) {
        cleanup_close int fd = open_beneath(root_fd, bad->path, O_PATH | O_NOFOLLOW, 0);
        ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", bad->target, sizeof(bad->target) - 1);

        bad->target[MAX(n, 0)] = '\0';
        utf8_sanitize(bad->target);
}

/* Finds the first component that cannot be opened. A failure here only makes the message less
 * detailed. */
static void find_bad_component(int root_fd, const char *path, BadComponent *ret) {
        size_t length = 0;

        do {
                cleanup_close int fd = -EBADF;

                length += strspn(path + length, "/");
                length += strcspn(path + length, "/");
                free(ret->path);
                ret->path = strndup(path, length);
                if (!ret->path)
                        return;
                fd = open_beneath(root_fd, ret->path, O_PATH | (path[length] ? O_DIRECTORY : 0), 0);
                if (fd < 0)
                        break;
        } while (path[length]);
        read_link_beneath(root_fd, ret);
        utf8_sanitize(ret->path);
}

/* Containers may have created anything in the volume, so the message names the obstacle. */
static int explain_subpath(int r, int root_fd, const char *path, Error *reterr) {
        cleanup_with(bad_component_done) BadComponent bad = { 0 };
        bool is_link;

        find_bad_component(root_fd, path, &bad);
        is_link = bad.target[0] != '\0';
        if (r == -EXDEV && is_link)
                return error_setf(reterr, EXDEV,
                                  "the subPath '%s' leaves its volume: '%s' is a link to '%s'; a "
                                  "subPath must stay in the volume",
                                  path, strna(bad.path), bad.target);
        if (r == -EXDEV)
                return error_setf(reterr, EXDEV,
                                  "the subPath '%s' leaves its volume; a subPath must stay in it",
                                  path);
        if (r == -ELOOP || (is_link && (r == -ENOTDIR || r == -ENOENT)))
                return error_setf(reterr, -r,
                                  "the subPath '%s' cannot be followed: '%s' is a link to '%s', "
                                  "which does not exist, or is not a directory, or leads to itself",
                                  path, strna(bad.path), bad.target);
        if (r == -ENOTDIR)
                return error_setf(reterr, ENOTDIR,
                                  "the subPath '%s' goes through '%s', which is not a directory",
                                  path, strna(bad.path));
        if (r == -EROFS)
                return error_setf(reterr, EROFS,
                                  "the subPath '%s' does not exist in its volume, and cannot be "
                                  "made: the volume is read-only",
                                  path);
        return error_setf(reterr, -r, "cannot open the subPath '%s' in its volume: %s", path,
                          strerror(-r));
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
        return fd < 0 ? explain_subpath(fd, root_fd, rest, reterr) : fd;
}
