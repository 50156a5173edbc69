/* SPDX-License-Identifier: Apache-2.0 */

/* Whiteouts. The tar of a layer lists, in any order, which parts of the lower layers are hidden;
 * files of the layer itself stay. Overlayfs has two representations for them: a device 0:0 for one
 * name, and an attribute of a directory that is not merged with the one below. */

#include "agent/image-helper/archive/tar-name.h"
#include "agent/image-helper/unpack/layer-tree-private.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"

#include <fcntl.h>
#include <sys/xattr.h>

enum {
        IMPLIED_MAX = 4096 /* beyond this, an empty directory may be visible that umoci would not
                            * create */
};

int layer_tree_mark_opaque(const LayerTree *tree, int fd) {
        if (tree->below.n_layers == 0)
                return 0;
        return fsetxattr(fd, XATTR_OPAQUE, "y", 1, 0) < 0 ? -errno : 0;
}

bool layer_tree_lookup(int dir_fd, const char *base, struct stat *ret) {
        return fstatat(dir_fd, base, ret, AT_SYMLINK_NOFOLLOW) >= 0;
}

int layer_tree_child_path(const LayerTree *tree, const char *base, char ret[static PATH_MAX]) {
        int n = snprintf(ret, PATH_MAX, "%s%s%s", tree->path, tree->path[0] ? "/" : "", base);

        return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

void layer_tree_add_implied(LayerTree *tree, const char *path) {
        if (strv_length(tree->implied) < IMPLIED_MAX)
                (void) strv_append(&tree->implied, path);
}

void layer_tree_remove_implied(LayerTree *tree, const char *path) {
        size_t n = strv_length(tree->implied);

        for (size_t i = 0; i < n; i++)
                if (streq(tree->implied[i], path)) {
                        free(tree->implied[i]);
                        memmove(&tree->implied[i], &tree->implied[i + 1],
                                (n - i) * sizeof(*tree->implied));
                        return;
                }
}

/* Whiteouts have a meaning only in directories that are merged; in other directories they would be
 * visible. */
static int drop_whiteouts(int dir_fd, unsigned depth) {
        cleanup_closedir DIR *dir = NULL;
        int copy = open_without_symlinks(dir_fd, "", O_RDONLY | O_DIRECTORY);
        const struct dirent *entry;
        int r;

        if (copy < 0)
                return copy;
        dir = fdopendir(copy);
        if (!dir) {
                close_fd(copy);
                return -ENOMEM;
        }
        while ((r = read_directory_entry(dir, &entry)) > 0) {
                cleanup_close int fd = -EBADF;
                struct stat st;

                if (!layer_tree_lookup(dir_fd, entry->d_name, &st))
                        continue;
                if (stat_is_whiteout(&st)) {
                        r = unlinkat(dir_fd, entry->d_name, 0) < 0 ? -errno : 0;
                } else if (S_ISDIR(st.st_mode) && depth < TAR_NAME_DEPTH_MAX) {
                        fd = open_without_symlinks(dir_fd, entry->d_name, O_RDONLY | O_DIRECTORY);
                        r = fd < 0 ? fd : drop_whiteouts(fd, depth + 1);
                        (void) futimens(fd, (struct timespec[]){ st.st_atim, st.st_mtim });
                }
                if (r < 0)
                        return r;
        }
        return r;
}

/* Directories that exist only for whiteouts are removed with them. The deepest were created
 * last. */
static void drop_implied(LayerTree *tree, const char *path) {
        size_t length = strlen(path);

        for (size_t i = strv_length(tree->implied); i-- > 0;)
                if (strncmp(tree->implied[i], path, length) == 0 && tree->implied[i][length] == '/')
                        (void) unlinkat(tree->layers[0], tree->implied[i], AT_REMOVEDIR);
}

static int make_opaque(LayerTree *tree, int dir_fd, const char *path) {
        int r = layer_tree_mark_opaque(tree, dir_fd);

        if (r < 0)
                return r;
        r = drop_whiteouts(dir_fd, 0);
        if (r < 0)
                return r;
        drop_implied(tree, path);
        return 0;
}

static bool is_implied(const LayerTree *tree, const char *path) {
        strv_foreach(other, tree->implied)
                if (streq(*other, path))
                        return true;
        return false;
}

/* 1: it existed only for whiteouts, and has been removed. */
static int hide_directory(LayerTree *tree, const char *base, const char *path) {
        cleanup_close int fd = open_without_symlinks(tree->fd, base, O_RDONLY | O_DIRECTORY);
        int r = fd < 0 ? fd : make_opaque(tree, fd, path);

        if (r < 0 || !is_implied(tree, path))
                return r;
        return unlinkat(tree->fd, base, AT_REMOVEDIR) >= 0;
}

int layer_tree_apply_whiteout(LayerTree *tree, const char *base, Error *reterr) {
        char path[PATH_MAX];
        struct stat st;
        int r;

        r = layer_tree_child_path(tree, base, path);
        if (r < 0)
                return r;
        if (layer_tree_lookup(tree->fd, base, &st)) {
                if (!S_ISDIR(st.st_mode))
                        return 0;
                r = hide_directory(tree, base, path);
                if (r <= 0)
                        return r;
        }
        r = layer_view_find(&tree->all, path, &st);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        if (mknodat(tree->fd, base, S_IFCHR, 0) < 0)
                return error_setf(reterr, errno, "the whiteout cannot be made: %s",
                                  strerror(errno));
        return 0;
}

/* The names are read one by one, because there may be millions; the lower layer is never written
 * to. */
static int hide_names_of(LayerTree *tree, int fd, Error *reterr) {
        int copy = open_without_symlinks(fd, "", O_RDONLY | O_DIRECTORY), r;
        cleanup_closedir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        const struct dirent *entry;

        if (!dir) {
                close_fd(copy);
                return -ENOMEM;
        }
        while ((r = read_directory_entry(dir, &entry)) > 0) {
                r = layer_tree_apply_whiteout(tree, entry->d_name, reterr);
                if (r < 0)
                        return r;
        }
        return r;
}

/* Overlayfs does not check whether the top of a layer is opaque; so each name is hidden
 * separately. */
static int hide_all_at_top(LayerTree *tree, Error *reterr) {
        for (size_t i = 0; i < tree->below.n_layers; i++) {
                int r = layer_view_await(&tree->below, i);

                if (r < 0)
                        return r;
                r = hide_names_of(tree, tree->below.layers[i], reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

int layer_tree_apply_opaque(LayerTree *tree, Error *reterr) {
        int r;

        if (tree->path[0] == '\0')
                return hide_all_at_top(tree, reterr);
        r = make_opaque(tree, tree->fd, tree->path);
        return r < 0 ? error_prefixf(reterr, r, "the directory cannot be made opaque") : 0;
}
