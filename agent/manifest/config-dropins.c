/* SPDX-License-Identifier: Apache-2.0 */

/* Walks the directory in the order of Go's filepath.WalkDir(), which the kubelet uses. */

#include "agent/manifest/config-files.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/strv.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
        DROPINS_MAX = 256,
        DROPIN_DIRECTORIES_MAX = 32,
        DROPIN_DEPTH_MAX = 8
};

void config_dropins_done(ConfigDropins *dropins) {
        strv_free(dropins->files);
        strv_free(dropins->directories);
        strv_free(dropins->skipped);
        *dropins = (ConfigDropins){ 0 };
}

void config_files_need_present(ConfigFiles *files) {
        files->needs_file = files->needs_file || access(files->file, F_OK) >= 0;
        files->needs_directory =
                files->needs_directory || (files->directory && access(files->directory, F_OK) >= 0);
}

bool config_dropin_is_name(const char *name) {
        const char *dot = strrchr(name, '.');

        return dot && streq(dot, ".conf");
}

static int compare_dropin_names(const void *a, const void *b) {
        return strcmp(*(char *const *) a, *(char *const *) b);
}

static int read_sorted_names(const char *directory, char ***ret) {
        cleanup_closedir DIR *dir = opendir(directory);
        cleanup_strv char **names = NULL;
        const struct dirent *entry;
        int r;

        if (!dir)
                return -errno;
        while ((r = read_directory_entry(dir, &entry)) > 0)
                if (strv_append(&names, entry->d_name) < 0)
                        return -ENOMEM;
        if (r < 0)
                return r;
        if (names)
                qsort(names, strv_length(names), sizeof(*names), compare_dropin_names);
        *ret = TAKE_PTR(names);
        return 0;
}

static int walk_dropins(const char *directory, unsigned depth, ConfigDropins *ret, Error *reterr);

/* A link to a directory is not entered; a link to a file counts as a file. */
static int add_dropin(const char *directory, const char *name, unsigned depth, ConfigDropins *ret,
                      Error *reterr) {
        cleanup_free char *path = path_join(directory, name);
        struct stat st;

        if (!path)
                return -ENOMEM;
        if (lstat(path, &st) < 0)
                return error_setf(reterr, errno, "%s: %s", path, strerror(errno));
        if (S_ISDIR(st.st_mode))
                return walk_dropins(path, depth + 1, ret, reterr);
        if (!config_dropin_is_name(name))
                return strv_append(&ret->skipped, path);
        if (strv_length(ret->files) >= DROPINS_MAX)
                return error_setf(reterr, E2BIG, "%s: there are more than %d drop-ins", directory,
                                  DROPINS_MAX);
        return strv_append(&ret->files, path);
}

static int walk_dropins(const char *directory, unsigned depth, ConfigDropins *ret, Error *reterr) {
        cleanup_strv char **names = NULL;
        int r;

        if (depth > DROPIN_DEPTH_MAX || strv_length(ret->directories) >= DROPIN_DIRECTORIES_MAX)
                return error_setf(reterr, E2BIG,
                                  "%s: there are more than %d directories of drop-ins, or they are "
                                  "nested deeper than %d",
                                  directory, DROPIN_DIRECTORIES_MAX, DROPIN_DEPTH_MAX);
        r = read_sorted_names(directory, &names);
        if (r == -ENOENT && depth == 0)
                return 0;
        if (r < 0)
                return error_setf(reterr, -r, "%s: %s", directory, strerror(-r));
        r = strv_append(&ret->directories, directory);
        strv_foreach(name, names)
                if (r >= 0)
                        r = add_dropin(directory, *name, depth, ret, reterr);
        return r;
}

int config_dropins_list(const char *directory, ConfigDropins *ret, Error *reterr) {
        return walk_dropins(directory, 0, ret, reterr);
}
