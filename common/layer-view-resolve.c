/* SPDX-License-Identifier: Apache-2.0 */

/* Resolves symbolic links as in a container whose file system is the view. It does so in user
 * space, one component after another, so that the kernel never follows a link on the host. */

#include "common/cleanup.h"
#include "common/layer-view.h"

enum {
        SYMLINKS_MAX = 40
};

/* Puts 'target' before the rest of the path. */
static int prepend_link_target(char rest[static PATH_MAX], const char *target) {
        char whole[PATH_MAX];
        int n = snprintf(whole, sizeof(whole), "%s/%s", target, rest);

        if (n < 0 || (size_t) n >= sizeof(whole))
                return -ENAMETOOLONG;
        memcpy(rest, whole, (size_t) n + 1);
        return 0;
}

static int follow_symlink(const LayerView *view, int layer, const char *path,
                          char done[static PATH_MAX], char rest[static PATH_MAX]) {
        char target[PATH_MAX], *slash;
        int r;

        r = layer_view_readlink(view, layer, path, target, sizeof(target));
        if (r < 0)
                return r;
        if (target[0] == '/') {
                done[0] = '\0';
        } else {
                slash = strrchr(done, '/');
                *(slash ? slash : done) = '\0';
        }
        return prepend_link_target(rest, target);
}

/* Moves one component from 'rest' to 'done'. 1 if there was one, 0 at the end. The last one may be
 * a file if 'may_be_file' is set. */
static int resolve_step(const LayerView *view, char done[static PATH_MAX],
                        char rest[static PATH_MAX], bool may_be_file, unsigned *links,
                        Error *reterr) {
        size_t skip = strspn(rest, "/"), n = strcspn(rest + skip, "/"), length = strlen(done);
        const char *component = rest + skip;
        char *slash = strrchr(done, '/');
        struct stat st;
        int k;

        if (n == 0)
                return 0;
        if (n == 2 && component[0] == '.' && component[1] == '.')
                *(slash ? slash : done) = '\0';
        else if (!(n == 1 && component[0] == '.')) {
                if (length + n + 2 > PATH_MAX)
                        return -ENAMETOOLONG;
                (void) snprintf(done + length, PATH_MAX - length, "%s%.*s", length > 0 ? "/" : "",
                                (int) n, component);
        }
        memmove(rest, component + n, strlen(component + n) + 1);
        k = layer_view_find(view, done, &st);
        if (k == -ENOENT || (k >= 0 && S_ISDIR(st.st_mode)))
                return 1;
        if (k < 0)
                return k;
        if (!S_ISLNK(st.st_mode) && may_be_file && rest[strspn(rest, "/")] == '\0')
                return 1;
        if (!S_ISLNK(st.st_mode))
                return error_setf(reterr, ENOTDIR, "is below '%s', which is not a directory", done);
        if (++*links > SYMLINKS_MAX)
                return -ELOOP;
        k = follow_symlink(view, k, done, done, rest);
        return k < 0 ? k : 1;
}

static int resolve_path(const LayerView *view, const char *path, bool may_be_file,
                        char ret[static PATH_MAX], Error *reterr) {
        char rest[PATH_MAX];
        unsigned links = 0;
        int r;

        if (strlen(path) >= sizeof(rest))
                return -ENAMETOOLONG;
        memcpy(rest, path, strlen(path) + 1);
        ret[0] = '\0';
        do
                r = resolve_step(view, ret, rest, may_be_file, &links, reterr);
        while (r > 0);
        if (r == -ELOOP && view->lookups && atomic_load(view->lookups) <= 0)
                return error_setf(reterr, ELOOP,
                                  "the paths of the image take too many steps to resolve");
        return r;
}

int layer_view_resolve(const LayerView *view, const char *path, char ret[static PATH_MAX],
                       Error *reterr) {
        return resolve_path(view, path, false, ret, reterr);
}

int layer_view_resolve_file(const LayerView *view, const char *path, char ret[static PATH_MAX]) {
        return resolve_path(view, path, true, ret, NULL);
}
