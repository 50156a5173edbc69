/* SPDX-License-Identifier: Apache-2.0 */

/* Two steps keep us inside. First a name is resolved in the merged view, link by link, by us: the
 * result is a path of plain directories as the container sees it. Then that path is opened with
 * openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS) and everything is done with one component below
 * the descriptor. If the first step were wrong, the second would fail rather than lead out.
 *
 * Overlayfs merges directories of one name unless the upper one is opaque. So a directory that
 * takes the place of anything else of this layer (a whiteout, a file) is made opaque: whatever
 * stood there had already hidden the directory below. */

#include "agent/fetch/tree.h"

#include "agent/fetch/copy.h"
#include "agent/fetch/metadata.h"
#include "agent/fetch/name.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/xattr.h>

struct Tree {
        int *layers; /* this one, then those below */
        View all;
        View below;
        char *key;  /* the name that was entered, NULL: none */
        char *path; /* what it resolved to */
        int fd;     /* of it */
        struct timespec times[2];
};

int tree_fd(const Tree *tree) {
        return tree->fd;
}

const char *tree_path(const Tree *tree) {
        return tree->path;
}

static int own_fd(const Tree *tree) {
        return tree->layers[0];
}

static int prepare_top(const Tree *tree) {
        Metadata metadata = { .mode = 0755 };
        struct stat st;
        int r = 0;

        if (tree->below.n_layers > 0) {
                if (fstat(tree->below.layers[0], &st) < 0)
                        return -errno;
                metadata = metadata_of(&st);
                r = xattr_copy(tree->below.layers[0], own_fd(tree));
                if (r < 0)
                        return r;
        }
        r = metadata_apply(own_fd(tree), &metadata);
        if (r >= 0 && tree->below.n_layers > 0)
                r = metadata_apply_times(own_fd(tree), &metadata);
        return r;
}

int tree_new(int fd, const View *below, Tree **ret, Error *reterr) {
        cleanup_with(tree_freep) Tree *tree = calloc(1, sizeof(*tree));
        int r;

        if (!tree)
                return -ENOMEM;
        tree->fd = -EBADF;
        tree->layers = calloc(below->n_layers + 1, sizeof(int));
        if (!tree->layers)
                return -ENOMEM;
        tree->layers[0] = fd;
        if (below->n_layers > 0)
                memcpy(tree->layers + 1, below->layers, below->n_layers * sizeof(int));
        tree->all = (View){ tree->layers, below->n_layers + 1 };
        tree->below = (View){ tree->layers + 1, below->n_layers };
        r = prepare_top(tree);
        if (r < 0)
                return error_prefixf(reterr, r, "the layer's top directory");
        *ret = TAKE_PTR(tree);
        return 0;
}

static int mark_opaque(const Tree *tree, int fd) {
        if (tree->below.n_layers == 0)
                return 0;
        return fsetxattr(fd, XATTR_OPAQUE, "y", 1, 0) < 0 ? -errno : 0;
}

/* Owner, mode and times as the directory of that path has them below. */
static int inherit(const Tree *tree, const char *path, int fd) {
        cleanup_close int from = view_open(&tree->below, path, O_RDONLY | O_DIRECTORY);
        Metadata metadata = { .mode = 0755 };
        struct stat st;
        int r;

        if (from < 0)
                return metadata_apply(fd, &metadata);
        if (fstat(from, &st) < 0)
                return -errno;
        metadata = metadata_of(&st);
        r = metadata_apply(fd, &metadata);
        if (r >= 0)
                r = xattr_copy(from, fd);
        return r < 0 ? r : metadata_apply_times(fd, &metadata);
}

/* What is under a name in a directory of this layer. False where there is nothing. */
static bool look(int dir_fd, const char *base, struct stat *ret) {
        return fstatat(dir_fd, base, ret, AT_SYMLINK_NOFOLLOW) >= 0;
}

/* Makes one directory and puts its parent's times back. A descriptor. */
static int make_directory(const Tree *tree, int parent_fd, const char *base, const char *path) {
        cleanup_close int fd = -EBADF;
        struct stat parent, there;
        bool replaces = look(parent_fd, base, &there);
        struct timespec times[2];
        int r;

        if (fstat(parent_fd, &parent) < 0)
                return -errno;
        if (replaces && unlinkat(parent_fd, base, 0) < 0)
                return -errno;
        if (mkdirat(parent_fd, base, 0700) < 0)
                return -errno;
        fd = open_plainly(parent_fd, base, O_RDONLY | O_DIRECTORY);
        if (fd < 0)
                return fd;
        if (replaces) {
                r = metadata_apply(fd, &(Metadata){ .mode = 0755 });
                if (r >= 0)
                        r = mark_opaque(tree, fd);
        } else {
                r = inherit(tree, path, fd);
        }
        if (r < 0)
                return r;
        times[0] = parent.st_atim;
        times[1] = parent.st_mtim;
        return futimens(parent_fd, times) < 0 ? -errno : TAKE_FD(fd);
}

/* Opens a resolved path of this layer, making what is missing. A descriptor or -errno. */
static int open_or_make(const Tree *tree, const char *path) {
        cleanup_close int fd = open_plainly(own_fd(tree), "", O_RDONLY | O_DIRECTORY);
        char prefix[PATH_MAX], component[NAME_MAX + 1];
        size_t length = 0;

        if (fd < 0)
                return fd;
        while (path[length]) {
                size_t start = length + (path[length] == '/'), n = strcspn(path + start, "/");
                struct stat st;
                int next;

                if (n > NAME_MAX)
                        return -ENAMETOOLONG;
                length = start + n;
                (void) snprintf(component, sizeof(component), "%.*s", (int) n, path + start);
                (void) snprintf(prefix, sizeof(prefix), "%.*s", (int) length, path);
                if (look(fd, component, &st) && S_ISDIR(st.st_mode))
                        next = open_plainly(fd, component, O_RDONLY | O_DIRECTORY);
                else
                        next = make_directory(tree, fd, component, prefix);
                if (next < 0)
                        return next;
                close_fd(fd);
                fd = next;
        }
        return TAKE_FD(fd);
}

int tree_keep_times(Tree *tree) {
        struct stat st;

        if (fstat(tree->fd, &st) < 0)
                return -errno;
        tree->times[0] = st.st_atim;
        tree->times[1] = st.st_mtim;
        return 0;
}

static int enter_resolved(Tree *tree, const char *parent, const char *path, int fd) {
        cleanup_free char *key = strdup(parent), *resolved = strdup(path);
        int r;

        if (!key || !resolved)
                return -ENOMEM;
        tree->fd = fd;
        r = tree_keep_times(tree);
        if (r < 0) {
                tree->fd = -EBADF;
                return r;
        }
        tree->key = TAKE_PTR(key);
        tree->path = TAKE_PTR(resolved);
        return 0;
}

int tree_enter(Tree *tree, const char *parent, Error *reterr) {
        cleanup_close int fd = -EBADF;
        char path[PATH_MAX];
        int r;

        if (tree->key && streq(tree->key, parent))
                return 0;
        tree_leave(tree);

        /* What this layer has as plain directories is what the container sees: nothing below can
         * change it. Only else the layers below have to be asked. */
        fd = open_plainly(own_fd(tree), parent, O_RDONLY | O_DIRECTORY);
        if (fd >= 0) {
                r = enter_resolved(tree, parent, parent, fd);
        } else {
                r = view_resolve(&tree->all, parent, path, reterr);
                if (r < 0)
                        return r;
                fd = open_or_make(tree, path);
                r = fd < 0 ? fd : enter_resolved(tree, parent, path, fd);
        }
        if (r >= 0)
                fd = -EBADF;
        return r;
}

void tree_leave(Tree *tree) {
        if (!tree->key)
                return;
        (void) futimens(tree->fd, tree->times);
        tree->fd = close_fd(tree->fd);
        tree->key = (free(tree->key), NULL);
        tree->path = (free(tree->path), NULL);
}

int tree_clear(Tree *tree, const char *base, Error *reterr) {
        int r = remove_tree_at(tree->fd, base);

        return r < 0 ? error_prefixf(reterr, r, "what it replaces") : 0;
}

/* "<path of the entered directory>/<base>" */
static int child_path(const Tree *tree, const char *base, char ret[static PATH_MAX]) {
        int n = snprintf(ret, PATH_MAX, "%s%s%s", tree->path, tree->path[0] ? "/" : "", base);

        return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

int tree_make_directory(Tree *tree, const char *base, Error *reterr) {
        char path[PATH_MAX];
        struct stat st;
        int r;

        if (look(tree->fd, base, &st) && S_ISDIR(st.st_mode))
                return open_plainly(tree->fd, base, O_RDONLY | O_DIRECTORY);
        r = child_path(tree, base, path);
        return r < 0 ? r : make_directory(tree, tree->fd, base, path);
}

/* Whiteouts have a meaning only where directories are merged; elsewhere they would be seen. */
static int drop_whiteouts(int dir_fd, unsigned depth) {
        cleanup_closedir DIR *dir = NULL;
        int copy = open_plainly(dir_fd, "", O_RDONLY | O_DIRECTORY);
        struct dirent *entry;

        if (copy < 0)
                return copy;
        dir = fdopendir(copy);
        if (!dir) {
                close_fd(copy);
                return -ENOMEM;
        }
        while ((entry = readdir(dir))) {
                cleanup_close int fd = -EBADF;
                struct stat st;
                int r = 0;

                if (streq(entry->d_name, ".") || streq(entry->d_name, "..") ||
                    !look(dir_fd, entry->d_name, &st))
                        continue;
                if (stat_is_whiteout(&st)) {
                        r = unlinkat(dir_fd, entry->d_name, 0) < 0 ? -errno : 0;
                } else if (S_ISDIR(st.st_mode) && depth < NAME_DEPTH_MAX) {
                        fd = open_plainly(dir_fd, entry->d_name, O_RDONLY | O_DIRECTORY);
                        r = fd < 0 ? fd : drop_whiteouts(fd, depth + 1);
                        (void) futimens(fd, (struct timespec[]){ st.st_atim, st.st_mtim });
                }
                if (r < 0)
                        return r;
        }
        return 0;
}

static int make_opaque(const Tree *tree, int dir_fd) {
        int r = mark_opaque(tree, dir_fd);

        return r < 0 ? r : drop_whiteouts(dir_fd, 0);
}

int tree_whiteout(Tree *tree, const char *base, Error *reterr) {
        cleanup_close int fd = -EBADF;
        char path[PATH_MAX];
        struct stat st;
        int r;

        if (look(tree->fd, base, &st)) {
                if (!S_ISDIR(st.st_mode))
                        return 0;
                fd = open_plainly(tree->fd, base, O_RDONLY | O_DIRECTORY);
                return fd < 0 ? fd : make_opaque(tree, fd);
        }
        r = child_path(tree, base, path);
        if (r < 0)
                return r;
        r = view_find(&tree->all, path, &st);
        if (r == -ENOENT || r == -ENOTDIR)
                return 0;
        if (r < 0)
                return r;
        if (mknodat(tree->fd, base, S_IFCHR, 0) < 0)
                return error_setf(reterr, errno, "the whiteout cannot be made: %s",
                                  strerror(errno));
        return 0;
}

static int list_names(int fd, char ***names) {
        int copy = open_plainly(fd, "", O_RDONLY | O_DIRECTORY), r = 0;
        cleanup_closedir DIR *dir = copy < 0 ? NULL : fdopendir(copy);
        struct dirent *entry;

        if (!dir) {
                close_fd(copy);
                return -ENOMEM;
        }
        while (r >= 0 && (entry = readdir(dir)))
                if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
                        r = strv_append(names, entry->d_name);
        return r;
}

/* Overlayfs does not look whether the top of a layer is opaque; so each name is hidden by itself.
 */
static int hide_all_at_top(Tree *tree, Error *reterr) {
        cleanup_strv char **names = NULL;
        int r = 0;

        for (size_t i = 0; r >= 0 && i < tree->below.n_layers; i++)
                r = list_names(tree->below.layers[i], &names);
        strv_foreach(name, names) {
                if (r >= 0)
                        r = tree_whiteout(tree, *name, reterr);
        }
        return r;
}

int tree_opaque(Tree *tree, Error *reterr) {
        int r;

        if (tree->path[0] == '\0')
                return hide_all_at_top(tree, reterr);
        r = make_opaque(tree, tree->fd);
        return r < 0 ? error_prefixf(reterr, r, "the directory cannot be made opaque") : 0;
}

static int copy_up(const Tree *tree, const char *path, int dir_fd, const char *base,
                   uint64_t *ret_copied, Error *reterr) {
        struct stat st, parent;
        int k, r;

        /* The whole view is asked, for what this layer hides is not there. */
        k = view_find(&tree->all, path, &st);
        if (k == -ENOENT || k == -ENOTDIR)
                return error_setf(reterr, ENOENT, "is a hard link to '%s', which is not there",
                                  path);
        if (k < 0)
                return k;
        if (fstat(dir_fd, &parent) < 0)
                return -errno;
        if (S_ISREG(st.st_mode))
                r = copy_up_file(&tree->all, k, path, dir_fd, base, ret_copied);
        else if (S_ISLNK(st.st_mode))
                r = copy_up_symlink(&tree->all, k, path, dir_fd, base, &st);
        else
                return error_setf(reterr, EINVAL, "is a hard link to '%s', which is no file", path);
        if (r < 0)
                return error_prefixf(reterr, r, "'%s' cannot be copied up", path);
        (void) futimens(dir_fd, (struct timespec[]){ parent.st_atim, parent.st_mtim });
        return 0;
}

/* Opens the directory that a link's target is in and says what it is called without links. */
static int open_target(const Tree *tree, const char *target, char path[static PATH_MAX],
                       char **ret_parent, const char **ret_base, Error *reterr) {
        cleanup_free char *parent = NULL;
        const char *base;
        size_t length;
        int r;

        r = name_split(target, &parent, &base);
        if (r >= 0)
                r = view_resolve(&tree->all, parent, path, reterr);
        if (r < 0)
                return r;
        r = open_or_make(tree, path);
        if (r < 0)
                return r;
        length = strlen(path);
        (void) snprintf(path + length, PATH_MAX - length, "%s%s", length > 0 ? "/" : "", base);
        *ret_parent = TAKE_PTR(parent);
        *ret_base = base;
        return r;
}

int tree_link(Tree *tree, const char *base, const char *target, uint64_t *ret_copied,
              Error *reterr) {
        cleanup_free char *parent = NULL;
        cleanup_close int fd = -EBADF;
        char path[PATH_MAX], own[PATH_MAX];
        const char *target_base;
        struct stat st;
        int r;

        *ret_copied = 0;
        fd = open_target(tree, target, path, &parent, &target_base, reterr);
        if (fd < 0)
                return fd;
        r = child_path(tree, base, own);
        if (r < 0)
                return r;
        if (streq(own, path))
                return error_setf(reterr, EINVAL, "is a hard link to itself");
        if (!look(fd, target_base, &st) || stat_is_whiteout(&st))
                r = copy_up(tree, path, fd, target_base, ret_copied, reterr);
        else if (!S_ISREG(st.st_mode) && !S_ISLNK(st.st_mode) && !S_ISFIFO(st.st_mode))
                r = error_setf(reterr, EINVAL, "is a hard link to '%s', which is no file", path);
        if (r >= 0)
                r = tree_clear(tree, base, reterr);
        if (r < 0)
                return r;
        /* Without AT_SYMLINK_FOLLOW a symbolic link gets a second name, not what it points to. */
        if (linkat(fd, target_base, tree->fd, base, 0) < 0)
                return error_setf(reterr, errno, "cannot be linked to '%s': %s", path,
                                  strerror(errno));
        return 0;
}

Tree *tree_free(Tree *tree) {
        if (!tree)
                return NULL;
        tree_leave(tree);
        free(tree->layers);
        free(tree);
        return NULL;
}
