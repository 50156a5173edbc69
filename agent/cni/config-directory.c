/* SPDX-License-Identifier: Apache-2.0 */

/* The directory of network configurations, such as /etc/cni/net.d. It is read each time a pod's
 * network is set up. network-config.c checks the content of a file. */

#include "agent/cni/config-directory.h"

#include "agent/cni/limits.h"
#include "agent/cni/network-config.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <dirent.h>
#include <fcntl.h>

enum {
        FILES_MAX = 1024,
};

static bool is_config_file_name(const char *name) {
        const char *dot = strrchr(name, '.');

        return dot && name[0] != '.' && TEXT_IS_ANY_OF(dot, ".conflist", ".conf", ".json");
}

/* A copy of the default file, with any number in its name; the file of a network plugin takes
 * precedence. */
static bool is_own_file_name(const char *name) {
        static const char suffix[] = "mainstay.conflist";
        size_t length = strlen(name);

        return length >= strlen(suffix) && streq(name + length - strlen(suffix), suffix);
}

static int compare_config_file_names(const void *a, const void *b) {
        const char *x = *(char *const *) a, *y = *(char *const *) b;
        bool is_own_x = is_own_file_name(x), is_own_y = is_own_file_name(y);

        return is_own_x != is_own_y ? is_own_x - is_own_y : strcmp(x, y);
}

/* The files in the order in which they are tried; empty for a directory that does not exist. */
static int list_config_files(const char *directory, char ***ret) {
        cleanup_closedir DIR *dir = opendir(directory);
        cleanup_strv char **names = NULL;
        struct dirent *entry;

        if (!dir)
                return errno == ENOENT ? 0 : -errno;
        for (unsigned i = 0; i < FILES_MAX && (errno = 0, entry = readdir(dir)); i++)
                if (is_config_file_name(entry->d_name) && strv_append(&names, entry->d_name) < 0)
                        return -ENOMEM;
        if (errno != 0)
                return -errno;
        if (names)
                qsort(names, strv_length(names), sizeof(*names), compare_config_file_names);
        *ret = TAKE_PTR(names);
        return 0;
}

static int read_config_file(const char *file, char **ret_text, Error *reterr) {
        cleanup_free char *text = NULL;
        json_t *list = NULL;
        int r = read_file_at(AT_FDCWD, file, CNI_CONFIG_MAX, &text, NULL);

        if (r < 0)
                return error_setf(reterr, -r, "cannot read %s: %s", file, strerror(-r));
        r = cni_config_list_parse(text, &list, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", file);
        json_decref(list);
        *ret_text = TAKE_PTR(text);
        return 0;
}

static int load_config_file(const char *config_dir, char **ret_text, char **ret_file,
                            Error *reterr) {
        cleanup_strv char **names = NULL;
        cleanup_error Error first = ERROR_NULL;
        int r = list_config_files(config_dir, &names), first_code = -ENOENT;

        if (r < 0)
                return error_setf(reterr, -r, "cannot read the directory %s: %s", config_dir,
                                  strerror(-r));
        strv_foreach(name, names) {
                cleanup_free char *file = path_join(config_dir, *name);
                cleanup_error Error error = ERROR_NULL;

                r = file ? read_config_file(file, ret_text, &error) : -ENOMEM;
                if (r == -ENOMEM)
                        return r;
                if (r >= 0) {
                        if (first.message)
                                log_warning("Using the network configuration %s, because %s", file,
                                            first.message);
                        *ret_file = TAKE_PTR(file);
                        return 0;
                }
                if (!first.message) {
                        first_code = r == -ENOENT ? -EIO : r;
                        error_move(&first, &error);
                }
        }
        if (!first.message)
                return error_setf(reterr, ENOENT, "there is no network configuration in %s",
                                  config_dir);
        error_move(reterr, &first);
        return first_code;
}

int cni_config_load(const CniSettings *settings, char **ret_text, char **ret_file, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        int r = load_config_file(settings->config_dir, ret_text, ret_file, &error);

        if (r == -ENOENT && settings->has_default) {
                *ret_text = cni_built_in_config(settings->built_in);
                *ret_file = NULL;
                return *ret_text ? 0 : -ENOMEM;
        }
        if (reterr)
                error_move(reterr, &error);
        return r;
}
