/* SPDX-License-Identifier: Apache-2.0 */
#include "common/layer-view.h"

#include "common/cleanup.h"
#include "common/strv.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

int open_without_symlinks(int dir_fd, const char *path, int flags) {
        struct open_how how = {
                .flags = (uint64_t) (flags | O_NOFOLLOW | O_CLOEXEC),
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS |
                           RESOLVE_NO_XDEV,
        };
        long fd = syscall(SYS_openat2, dir_fd, path[0] ? path : ".", &how, sizeof(how));

        return fd < 0 ? -errno : (int) fd;
}

bool stat_is_whiteout(const struct stat *st) {
        return S_ISCHR(st->st_mode) && st->st_rdev == 0;
}

bool directory_is_opaque(int fd) {
        char value = '\0';

        return fgetxattr(fd, XATTR_OPAQUE, &value, sizeof(value)) == 1 && value == 'y';
}

/* A component in a layer costs one look-up; paths through many links or directories take thousands
 * of them in each of many layers. */
static bool may_look_up(const LayerView *view, int64_t n) {
        return !view->lookups || atomic_fetch_sub(view->lookups, n) > 0;
}

/* 1: found. 0: search the layer below. -ENOENT: this layer hides the ones below. */
static int find_in_layer(const LayerView *view, size_t i, const char *path, struct stat *ret) {
        int layer_fd = view->layers[i];
        cleanup_close int fd = -EBADF;
        bool hides = false;
        struct stat st;

        if (fstat(layer_fd, &st) < 0)
                return -errno;
        for (const char *p = path; *p;) {
                int dir_fd = fd >= 0 ? fd : layer_fd, next;
                char component[NAME_MAX + 2]; /* a longer one does not exist */
                size_t n = strcspn(p, "/");

                if (!may_look_up(view, 1))
                        return -ELOOP;
                (void) snprintf(component, sizeof(component), "%.*s", (int) n, p);
                if (fstatat(dir_fd, component, &st, AT_SYMLINK_NOFOLLOW) < 0) {
                        if (errno == ENOENT)
                                return hides ? -ENOENT : 0;
                        return -errno;
                }
                if (stat_is_whiteout(&st))
                        return -ENOENT;
                p += n + (p[n] == '/');
                if (*p == '\0')
                        break;
                /* This applies even if a layer above has a directory here, because nothing is
                 * merged with a file. */
                if (!S_ISDIR(st.st_mode))
                        return -ENOENT;
                next = open_without_symlinks(dir_fd, component, O_RDONLY | O_DIRECTORY);
                if (next < 0)
                        return next;
                close_fd(fd);
                fd = next;
                hides = hides || directory_is_opaque(fd);
        }
        *ret = st;
        return 1;
}

int layer_directories_open(char *const *layers, LayerDirectories *ret) {
        ret->fds = calloc(strv_length(layers) + 1, sizeof(*ret->fds));
        if (!ret->fds)
                return -ENOMEM;
        for (; layers && layers[ret->n]; ret->n++) {
                int fd = open(layers[ret->n], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

                if (fd < 0)
                        return -errno;
                ret->fds[ret->n] = fd;
        }
        return 0;
}

void layer_directories_done(LayerDirectories *directories) {
        while (directories->n > 0)
                close_fd(directories->fds[--directories->n]);
        free(directories->fds);
        directories->fds = NULL;
}

int layer_view_await(const LayerView *view, size_t i) {
        LayerViewGate *gate = view->gate;
        int r;

        if (!gate || gate->is_open || i < view->n_before)
                return 0;
        r = gate->wait(gate);
        gate->is_open = r >= 0;
        return r;
}

int layer_view_find(const LayerView *view, const char *path, struct stat *ret) {
        for (size_t i = 0; i < view->n_layers; i++) {
                int r = layer_view_await(view, i);

                if (r < 0)
                        return r;
                r = find_in_layer(view, i, path, ret);
                if (r < 0)
                        return r;
                if (r > 0)
                        return (int) i;
        }
        return -ENOENT;
}

int layer_view_open(const LayerView *view, const char *path, int flags) {
        struct stat st;
        int r = layer_view_find(view, path, &st);

        return r < 0 ? r : open_without_symlinks(view->layers[r], path, flags);
}

/* The kernel walks 32 components, in 64 bytes, in the time of one look-up. */
int layer_view_open_in(const LayerView *view, size_t i, const char *path, int flags) {
        if (!may_look_up(view, 1 + (int64_t) strlen(path) / 64))
                return -ELOOP;
        return open_without_symlinks(view->layers[i], path, flags);
}

int layer_view_readlink(const LayerView *view, int i, const char *path, char *buffer, size_t size) {
        cleanup_close int fd = open_without_symlinks(view->layers[i], path, O_PATH);
        ssize_t n;

        if (fd < 0)
                return fd;
        n = readlinkat(fd, "", buffer, size);
        if (n < 0)
                return -errno;
        if ((size_t) n >= size)
                return -ENAMETOOLONG;
        buffer[n] = '\0';
        return 0;
}
