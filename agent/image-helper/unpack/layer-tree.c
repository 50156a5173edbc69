/* SPDX-License-Identifier: Apache-2.0 */

/* Two steps prevent an escape from the directory. First this file resolves a name in the merged
 * view, link by link: the result is a path of plain directories as the container sees it. Then that
 * path is opened with openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS), and every change is made one
 * component below the descriptor. If the first step were wrong, the second would fail instead of
 * leaving the directory.
 *
 * Overlayfs merges directories with the same name unless the upper one is opaque. So a directory
 * that replaces something else in this layer (a whiteout, a file) is made opaque: the replaced
 * entry had already hidden the lower directory. */

#include "agent/image-helper/archive/tar-name.h"
#include "agent/image-helper/unpack/layer-tree-private.h"
#include "common/cleanup.h"
#include "common/file-copy.h"
#include "common/file.h"
#include "common/layer-view.h"
#include "common/strv.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>

/* Copy-up: copies a file from a lower layer to the layer being unpacked, with its metadata, like
 * overlayfs before a write. */

/* Copies the regular file 'path' of layer 'layer' to 'base' in 'dir_fd', which must not exist. 0,
 * with its size including holes, or -errno. */
static int copy_up_file(const LayerView *view, int layer, const char *path, int dir_fd,
                        const char *base, uint64_t *ret_copied) {
        cleanup_close int from =
                open_without_symlinks(view->layers[layer], path, O_RDONLY | O_NONBLOCK);
        cleanup_close int to = -EBADF;
        FileMetadata metadata;
        struct stat st;
        int r;

        if (from < 0)
                return from;
        if (fstat(from, &st) < 0)
                return -errno;
        metadata = file_metadata_of(&st);
        to = openat(dir_fd, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (to < 0)
                return -errno;
        r = file_copy_content(from, to, st.st_size);
        if (r < 0)
                return r;
        r = file_metadata_apply(to, &metadata);
        if (r < 0)
                return r;
        r = xattr_copy(from, to);
        if (r < 0)
                return r;
        r = file_metadata_apply_times(to, &metadata);
        if (r < 0)
                return r;
        *ret_copied = (uint64_t) st.st_size;
        return 0;
}

/* The same for a symbolic link. */
static int copy_up_symlink(const LayerView *view, int layer, const char *path, int dir_fd,
                           const char *base, const struct stat *st) {
        FileMetadata metadata = file_metadata_of(st);
        char target[PATH_MAX];
        int r;

        r = layer_view_readlink(view, layer, path, target, sizeof(target));
        if (r < 0)
                return r;
        if (symlinkat(target, dir_fd, base) < 0)
                return -errno;
        return file_metadata_apply_at(dir_fd, base, &metadata);
}

int layer_tree_fd(const LayerTree *tree) {
        return tree->fd;
}

static int own_layer_fd(const LayerTree *tree) {
        return tree->layers[0];
}

int layer_tree_new(int fd, const LayerView *below, LayerTree **ret) {
        cleanup_with(layer_tree_freep) LayerTree *tree = calloc(1, sizeof(*tree));

        if (!tree)
                return -ENOMEM;
        tree->fd = -EBADF;
        tree->layers = calloc(below->n_layers + 1, sizeof(int));
        if (!tree->layers)
                return -ENOMEM;
        tree->layers[0] = fd;
        if (below->n_layers > 0)
                memcpy(tree->layers + 1, below->layers, below->n_layers * sizeof(int));
        tree->all = (LayerView){ tree->layers, below->n_layers + 1, below->gate,
                                 below->n_before + 1, below->lookups };
        tree->below = *below;
        tree->below.layers = tree->layers + 1;
        *ret = TAKE_PTR(tree);
        return 0;
}

/* Owner, mode and times of the directory in the lower layer; if 'from' is -errno: root, with
 * 0755. */
static int inherit_directory_metadata(int from, int fd) {
        FileMetadata metadata = { .mode = 0755 };
        struct stat st;
        int r;

        if (from < 0)
                return file_metadata_apply(fd, &metadata);
        if (fstat(from, &st) < 0)
                return -errno;
        metadata = file_metadata_of(&st);
        r = file_metadata_apply(fd, &metadata);
        if (r < 0)
                return r;
        r = xattr_copy(from, fd);
        if (r < 0)
                return r;
        return file_metadata_apply_times(fd, &metadata);
}

int layer_tree_inherit_top(const LayerTree *tree, Error *reterr) {
        int r = tree->below.n_layers > 0 ? layer_view_await(&tree->below, 0) : 0;

        if (r < 0)
                return error_prefixf(reterr, r, "the top directory of the layer");
        r = inherit_directory_metadata(tree->below.n_layers > 0 ? tree->below.layers[0] : -EBADF,
                                       own_layer_fd(tree));
        return r < 0 ? error_prefixf(reterr, r, "the top directory of the layer") : 0;
}

/* Creates one directory and restores the times of its parent. With a path, metadata that the tar
 * does not contain is inherited. Returns a descriptor. */
static int make_tree_directory(const LayerTree *tree, int parent_fd, const char *base,
                               const char *path) {
        cleanup_close int fd = -EBADF, from = -EBADF;
        struct stat parent, there;
        bool replaces = layer_tree_lookup(parent_fd, base, &there);
        struct timespec times[2];
        int r;

        if (fstat(parent_fd, &parent) < 0)
                return -errno;
        /* Uses the view that the container has so far: nothing is inherited from a directory that
         * this layer hides. */
        if (!replaces && path)
                from = layer_view_open(&tree->all, path, O_RDONLY | O_DIRECTORY);
        if (replaces && unlinkat(parent_fd, base, 0) < 0)
                return -errno;
        if (mkdirat(parent_fd, base, 0700) < 0)
                return -errno;
        fd = open_without_symlinks(parent_fd, base, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return fd;
        r = path ? inherit_directory_metadata(from, fd) : 0;
        if (r < 0)
                return r;
        if (replaces)
                r = layer_tree_mark_opaque(tree, fd);
        if (r < 0)
                return r;
        /* The times of the entered directory are restored when it is left. */
        if (parent_fd == tree->fd)
                return TAKE_FD(fd);
        times[0] = parent.st_atim;
        times[1] = parent.st_mtim;
        return futimens(parent_fd, times) < 0 ? -errno : TAKE_FD(fd);
}

/* Opens a resolved path of this layer, creating missing directories. A descriptor or -errno. */
static int open_or_make(LayerTree *tree, const char *path, bool implied) {
        cleanup_close int fd =
                open_without_symlinks(own_layer_fd(tree), "", O_RDONLY | O_DIRECTORY);
        char prefix[PATH_MAX], component[NAME_MAX + 1];
        size_t length = 0;

        if (fd < 0)
                return fd;
        while (path[length]) {
                size_t start = length + (path[length] == '/'), n = strcspn(path + start, "/");
                bool is_there;
                struct stat st;
                int next;

                if (n > NAME_MAX)
                        return -ENAMETOOLONG;
                length = start + n;
                (void) snprintf(component, sizeof(component), "%.*s", (int) n, path + start);
                (void) snprintf(prefix, sizeof(prefix), "%.*s", (int) length, path);
                is_there = layer_tree_lookup(fd, component, &st) && S_ISDIR(st.st_mode);
                if (is_there)
                        next = open_without_symlinks(fd, component, O_RDONLY | O_DIRECTORY);
                else
                        next = make_tree_directory(tree, fd, component, prefix);
                if (next < 0)
                        return next;
                if (implied && !is_there)
                        layer_tree_add_implied(tree, prefix);
                close_fd(fd);
                fd = next;
        }
        return TAKE_FD(fd);
}

int layer_tree_keep_times(LayerTree *tree) {
        struct stat st;

        if (fstat(tree->fd, &st) < 0)
                return -errno;
        tree->times[0] = st.st_atim;
        tree->times[1] = st.st_mtim;
        return 0;
}

static int enter_resolved(LayerTree *tree, const char *parent, const char *path, int fd) {
        cleanup_free char *key = strdup(parent), *resolved = strdup(path);
        int r;

        if (!key || !resolved)
                return -ENOMEM;
        tree->fd = fd;
        r = layer_tree_keep_times(tree);
        if (r < 0) {
                tree->fd = -EBADF;
                return r;
        }
        tree->key = TAKE_PTR(key);
        tree->path = TAKE_PTR(resolved);
        return 0;
}

/* A chain of links may lead deeper than any single name. A tree of that depth could not be removed
 * again, because removal takes a descriptor for each level. */
static int check_tree_depth(const char *path, Error *reterr) {
        unsigned depth = path[0] != '\0';

        for (const char *p = path; *p; p++)
                depth += *p == '/';
        if (depth > TAR_NAME_DEPTH_MAX)
                return error_setf(reterr, ENAMETOOLONG, "is below more than %d directories",
                                  TAR_NAME_DEPTH_MAX);
        return 0;
}

static int enter_tree_directory(LayerTree *tree, const char *parent, bool implied, Error *reterr) {
        cleanup_close int fd = -EBADF;
        char path[PATH_MAX];
        int r;

        if (tree->key && streq(tree->key, parent))
                return 0;
        layer_tree_leave(tree);

        /* The container sees plain directories of this layer unchanged, whatever the lower layers
         * contain. The lower layers are searched only in other cases. */
        fd = open_without_symlinks(own_layer_fd(tree), parent, O_RDONLY | O_DIRECTORY);
        if (fd >= 0) {
                r = enter_resolved(tree, parent, parent, fd);
        } else {
                r = layer_view_resolve(&tree->all, parent, path, reterr);
                if (r < 0)
                        return r;
                r = check_tree_depth(path, reterr);
                if (r < 0)
                        return r;
                fd = open_or_make(tree, path, implied);
                r = fd < 0 ? fd : enter_resolved(tree, parent, path, fd);
        }
        if (r < 0)
                return r;
        fd = -EBADF;
        return 0;
}

/* Whether the container would see a directory there, following links. 1, 0, or -errno. */
static int has_directory(const LayerTree *tree, const char *path, Error *reterr) {
        char resolved[PATH_MAX];
        struct stat st;
        int r;

        r = layer_view_resolve(&tree->all, path, resolved, NULL);
        if (r >= 0)
                r = layer_view_find(&tree->all, resolved, &st);
        if (r == -ENOENT || r == -ENOTDIR)
                return 0;
        return r < 0 ? error_prefixf(reterr, r, "parent directory") : S_ISDIR(st.st_mode);
}

int layer_tree_enter(LayerTree *tree, const char *parent, Error *reterr) {
        return enter_tree_directory(tree, parent, false, reterr);
}

int layer_tree_enter_to_hide(LayerTree *tree, const char *parent, Error *reterr) {
        int r = has_directory(tree, parent, reterr);

        if (r <= 0)
                return r;
        r = enter_tree_directory(tree, parent, true, reterr);
        return r < 0 ? r : 1;
}

void layer_tree_leave(LayerTree *tree) {
        if (!tree->key)
                return;
        (void) futimens(tree->fd, tree->times);
        tree->fd = close_fd(tree->fd);
        tree->key = (free(tree->key), NULL);
        tree->path = (free(tree->path), NULL);
}

int layer_tree_clear(LayerTree *tree, const char *base, Error *reterr) {
        int r = remove_tree_at(tree->fd, base);

        return r < 0 ? error_prefixf(reterr, r, "the entry that it replaces") : 0;
}

int layer_tree_make_directory(LayerTree *tree, const char *base, Error *reterr) {
        char path[PATH_MAX];
        struct stat st;
        int r;

        r = layer_tree_child_path(tree, base, path);
        if (r < 0)
                return r;
        layer_tree_remove_implied(tree, path);
        /* Usually nothing exists yet, so that one call suffices. */
        if (mkdirat(tree->fd, base, 0700) >= 0)
                return open_without_symlinks(tree->fd, base, O_RDONLY | O_DIRECTORY);
        if (errno != EEXIST)
                return -errno;
        if (layer_tree_lookup(tree->fd, base, &st) && S_ISDIR(st.st_mode))
                return open_without_symlinks(tree->fd, base, O_RDONLY | O_DIRECTORY);
        return make_tree_directory(tree, tree->fd, base, NULL);
}

static int copy_up(const LayerTree *tree, const char *path, const char *base, uint64_t *ret_copied,
                   Error *reterr) {
        struct stat st;
        int k, r;

        /* The whole view is searched, because entries that this layer hides do not exist. */
        k = layer_view_find(&tree->all, path, &st);
        if (k == -ENOENT)
                return error_setf(reterr, ENOENT, "is a hard link to '%s', which does not exist",
                                  path);
        if (k < 0)
                return k;
        if (S_ISREG(st.st_mode))
                r = copy_up_file(&tree->all, k, path, tree->fd, base, ret_copied);
        else if (S_ISLNK(st.st_mode))
                r = copy_up_symlink(&tree->all, k, path, tree->fd, base, &st);
        else
                return error_setf(reterr, EINVAL, "is a hard link to '%s', which is not a file",
                                  path);
        return r < 0 ? error_prefixf(reterr, r, "cannot copy up '%s'", path) : 0;
}

/* Resolves the links in the path of a link's target. */
static int resolve_target(const LayerTree *tree, const char *target, char path[static PATH_MAX],
                          Error *reterr) {
        cleanup_free char *parent = NULL;
        const char *base;
        size_t length;
        int n, r;

        r = tar_name_split(target, &parent, &base);
        if (r < 0)
                return r;
        r = layer_view_resolve(&tree->all, parent, path, reterr);
        if (r < 0)
                return r;
        length = strlen(path);
        n = snprintf(path + length, PATH_MAX - length, "%s%s", length > 0 ? "/" : "", base);
        return n < 0 || (size_t) n >= PATH_MAX - length ? -ENAMETOOLONG : 0;
}

/* Without AT_SYMLINK_FOLLOW, the symbolic link itself gets a second name, and not its target. */
static int link_own_file(const LayerTree *tree, const char *path, const char *base, Error *reterr) {
        cleanup_free char *parent = NULL;
        cleanup_close int fd = -EBADF;
        const char *target;
        int r;

        r = tar_name_split(path, &parent, &target);
        if (r < 0)
                return r;
        fd = open_without_symlinks(own_layer_fd(tree), parent, O_RDONLY | O_DIRECTORY);
        if (fd < 0 || linkat(fd, target, tree->fd, base, 0) < 0)
                return error_setf(reterr, errno, "cannot be linked to '%s': %s", path,
                                  strerror(errno));
        return 0;
}

int layer_tree_link(LayerTree *tree, const char *base, const char *target, uint64_t *ret_copied,
                    Error *reterr) {
        LayerView own = { tree->layers, 1 };
        char path[PATH_MAX], link[PATH_MAX];
        struct stat st;
        int k, r;

        *ret_copied = 0;
        r = resolve_target(tree, target, path, reterr);
        if (r < 0)
                return r;
        r = layer_tree_child_path(tree, base, link);
        if (r < 0)
                return r;
        if (streq(link, path))
                return error_setf(reterr, EINVAL, "is a hard link to itself");
        if (strncmp(path, link, strlen(link)) == 0 && path[strlen(link)] == '/')
                return error_setf(reterr, EINVAL, "is a hard link to the entry that it replaces");
        k = layer_view_find(&own, path, &st);
        if (k >= 0 && !S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode) && !S_ISFIFO(st.st_mode))
                return error_setf(reterr, EINVAL, "is a hard link to '%s', which is not a file",
                                  path);
        r = layer_tree_clear(tree, base, reterr);
        if (r < 0)
                return r;
        return k >= 0 ? link_own_file(tree, path, base, reterr)
                      : copy_up(tree, path, base, ret_copied, reterr);
}

LayerTree *layer_tree_free(LayerTree *tree) {
        if (!tree)
                return NULL;
        layer_tree_leave(tree);
        strv_free(tree->implied);
        free(tree->layers);
        free(tree);
        return NULL;
}
