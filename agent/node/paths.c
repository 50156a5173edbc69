/* SPDX-License-Identifier: Apache-2.0 */
/* Directories and programs of the agent. */

#include "agent/node/paths.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Overlayfs takes a list of paths, which cannot contain its separators. */
static int check_mountable_path(const char *path, Error *reterr) {
        if (strpbrk(path, ",:\\\n\t \"'"))
                return error_setf(reterr, EINVAL,
                                  "the directory '%s' has a character in its path that a mount "
                                  "option cannot hold",
                                  path);
        return 0;
}

int paths_make_directory(const char *path, mode_t mode, char **ret, Error *reterr) {
        char real[PATH_MAX];
        int r = mkdir_parents_at(AT_FDCWD, path, 0755);

        if (r < 0)
                return error_setf(reterr, -r, "cannot make the directory %s: %s", path,
                                  strerror(-r));
        if (chmod(path, mode) < 0 || !realpath(path, real))
                return error_setf(reterr, errno, "cannot use the directory %s: %s", path,
                                  strerror(errno));
        r = check_mountable_path(real, reterr);
        if (r < 0)
                return r;
        *ret = strdup(real);
        return *ret ? 0 : -ENOMEM;
}

int paths_make_subdirectory(const char *parent, const char *name, Error *reterr) {
        cleanup_free char *path = path_join(parent, name);
        int r = path ? mkdir_parents_at(AT_FDCWD, path, 0755) : -ENOMEM;

        if (r < 0)
                return error_setf(reterr, -r, "cannot make the directory %s/%s: %s", parent, name,
                                  strerror(-r));
        return 0;
}

int paths_find_program(const char *name, char **ret) {
        char self[PATH_MAX], *path, *slash;
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

        if (n > 0) {
                self[n] = '\0';
                slash = strrchr(self, '/');
                if (asprintf(&path, "%.*s/%s", (int) (slash - self), self, name) < 0)
                        return -ENOMEM;
                if (access(path, X_OK) >= 0) {
                        *ret = path;
                        return 0;
                }
                free(path);
        }
        *ret = path_join(MAINSTAY_LIBEXEC_DIR, name);
        return *ret ? 0 : -ENOMEM;
}
