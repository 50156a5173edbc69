/* SPDX-License-Identifier: Apache-2.0 */
/* What an administrator wrote: read from the first file of a directory, and checked before any
 * plugin is named by it. A plugin's type is a file name that we run as root; so it may only be a
 * name. */

#include "agent/cni/config.h"

#include "agent/cni/cni.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>

enum {
        DEPTH_MAX = 32,
        NAME_MAX_LENGTH = 128,
        FILES_MAX = 1024,
};

/* In order. 1.1.0 adds commands that we do not use. */
static const char *const versions[] = { "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0" };

const char cni_default_config[] = "{\n"
                                  "  \"cniVersion\": \"1.0.0\",\n"
                                  "  \"name\": \"mainstay\",\n"
                                  "  \"plugins\": [\n"
                                  "    {\n"
                                  "      \"type\": \"bridge\",\n"
                                  "      \"bridge\": \"mainstay0\",\n"
                                  "      \"isGateway\": true,\n"
                                  "      \"ipMasq\": true,\n"
                                  "      \"hairpinMode\": true,\n"
                                  "      \"ipam\": {\n"
                                  "        \"type\": \"host-local\",\n"
                                  "        \"ranges\": [[{ \"subnet\": \"10.189.0.0/16\" }]],\n"
                                  "        \"routes\": [{ \"dst\": \"0.0.0.0/0\" }]\n"
                                  "      }\n"
                                  "    },\n"
                                  "    {\n"
                                  "      \"type\": \"portmap\",\n"
                                  "      \"capabilities\": { \"portMappings\": true }\n"
                                  "    },\n"
                                  "    {\n"
                                  "      \"type\": \"firewall\"\n"
                                  "    },\n"
                                  "    {\n"
                                  "      \"type\": \"bandwidth\",\n"
                                  "      \"capabilities\": { \"bandwidth\": true }\n"
                                  "    }\n"
                                  "  ]\n"
                                  "}\n";

static int find_cni_version(const char *version) {
        for (size_t i = 0; i < N_ELEMENTS(versions); i++)
                if (streq(versions[i], version))
                        return (int) i;
        return -1;
}

int cni_version_compare(const char *a, const char *b) {
        int x = find_cni_version(a), y = find_cni_version(b);

        return x < y ? -1 : x > y;
}

int cni_check_json_depth(const json_t *value, unsigned max_depth) {
        json_t *item;
        const char *key;
        size_t i;

        if (max_depth == 0)
                return -EINVAL;
        if (json_is_array(value)) {
                json_array_foreach((json_t *) (uintptr_t) value, i, item)
                        if (cni_check_json_depth(item, max_depth - 1) < 0)
                                return -EINVAL;
        } else if (json_is_object(value)) {
                json_object_foreach((json_t *) (uintptr_t) value, key, item)
                        if (cni_check_json_depth(item, max_depth - 1) < 0)
                                return -EINVAL;
        }
        return 0;
}

static bool is_cni_name_character(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '.' || c == '_' || c == '-';
}

/* A name of one or more such characters that is no directory. */
static bool is_cni_name(const char *text) {
        if (!text || !text[0] || strlen(text) > NAME_MAX_LENGTH || streq(text, ".") ||
            streq(text, ".."))
                return false;
        for (const char *c = text; *c; c++)
                if (!is_cni_name_character(*c))
                        return false;
        return true;
}

static int check_plugin_config(const json_t *plugin, size_t i, Error *reterr) {
        const char *type = json_string_value(json_object_get(plugin, "type"));

        if (!json_is_object(plugin))
                return error_setf(reterr, EINVAL, "plugins[%zu]: must be an object", i);
        if (!type)
                return error_setf(reterr, EINVAL, "plugins[%zu].type: is missing", i);
        if (!is_cni_name(type))
                return error_setf(reterr, EINVAL,
                                  "plugins[%zu].type: must be a file's name of letters, digits, "
                                  "'_', '.' and '-', not '%.64s'",
                                  i, type);
        return 0;
}

static int check_config_list(const json_t *list, Error *reterr) {
        const char *name = json_string_value(json_object_get(list, "name"));
        const char *version = json_string_value(json_object_get(list, "cniVersion"));
        const json_t *plugins = json_object_get(list, "plugins");
        int r = 0;

        if (!is_cni_name(name) || name[0] == '.' || name[0] == '_' || name[0] == '-')
                return error_setf(reterr, EINVAL,
                                  "name: must be letters, digits, '_', '.' and '-', the first of "
                                  "them a letter or a digit, not '%.64s'",
                                  strna(name));
        if (!version || find_cni_version(version) < 0)
                return error_setf(reterr, EINVAL,
                                  "cniVersion: must be one of 0.3.0, 0.3.1, 0.4.0, 1.0.0 and "
                                  "1.1.0, not '%.16s'",
                                  strna(version));
        if (!json_is_array(plugins) || json_array_size(plugins) == 0)
                return error_setf(reterr, EINVAL, "plugins: must be a list of at least one plugin");
        if (json_array_size(plugins) > CNI_PLUGINS_MAX)
                return error_setf(reterr, EINVAL, "plugins: must be at most %d plugins, not %zu",
                                  CNI_PLUGINS_MAX, json_array_size(plugins));
        for (size_t i = 0; r >= 0 && i < json_array_size(plugins); i++)
                r = check_plugin_config(json_array_get(plugins, i), i, reterr);
        return r;
}

/* A file of one plugin is a list of that. */
static json_t *wrap_single_plugin(json_t *plugin) {
        return json_pack("{s:O*, s:O*, s:[O]}", "name", json_object_get(plugin, "name"),
                         "cniVersion", json_object_get(plugin, "cniVersion"), "plugins", plugin);
}

int cni_config_list_parse(const char *text, json_t **ret, Error *reterr) {
        json_error_t problem;
        json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &problem);
        int r;

        if (!root)
                return error_setf(reterr, EINVAL, "%d:%d: %s", problem.line, problem.column,
                                  problem.text);
        if (!json_is_object(root))
                r = error_setf(reterr, EINVAL, "must be an object");
        else if (cni_check_json_depth(root, DEPTH_MAX) < 0)
                r = error_setf(reterr, EINVAL, "is nested more than %d levels deep", DEPTH_MAX);
        else {
                if (!json_object_get(root, "plugins")) {
                        json_t *list = wrap_single_plugin(root);

                        json_decref(root);
                        root = list;
                }
                r = root ? check_config_list(root, reterr) : -ENOMEM;
        }
        if (r < 0) {
                json_decref(root);
                return r;
        }
        *ret = root;
        return 0;
}

/* ---- the directory ---- */

static bool is_config_file_name(const char *name) {
        static const char *const suffixes[] = { ".conflist", ".conf", ".json" };
        const char *dot = strrchr(name, '.');

        for (size_t i = 0; dot && name[0] != '.' && i < N_ELEMENTS(suffixes); i++)
                if (streq(dot, suffixes[i]))
                        return true;
        return false;
}

/* The name that sorts first, NULL where there is none. */
static int find_first_config_file(const char *directory, char **ret) {
        cleanup_closedir DIR *dir = opendir(directory);
        cleanup_free char *first = NULL;
        struct dirent *entry;

        if (!dir)
                return errno == ENOENT ? 0 : -errno;
        for (unsigned i = 0; i < FILES_MAX && (errno = 0, entry = readdir(dir)); i++) {
                if (!is_config_file_name(entry->d_name) ||
                    (first && strcmp(entry->d_name, first) >= 0))
                        continue;
                free(first);
                first = strdup(entry->d_name);
                if (!first)
                        return -ENOMEM;
        }
        if (errno != 0)
                return -errno;
        *ret = TAKE_PTR(first);
        return 0;
}

int cni_config_load(const char *config_dir, char **ret_text, char **ret_file, Error *reterr) {
        cleanup_free char *name = NULL, *file = NULL, *text = NULL;
        int r = find_first_config_file(config_dir, &name);

        if (r < 0)
                return error_setf(reterr, -r, "cannot read the directory %s: %s", config_dir,
                                  strerror(-r));
        if (name) {
                file = path_join(config_dir, name);
                if (!file)
                        return -ENOMEM;
                r = read_file_at(AT_FDCWD, file, CNI_CONFIG_MAX, &text, NULL);
                if (r < 0)
                        return error_setf(reterr, -r, "cannot read %s: %s", file, strerror(-r));
        } else
                text = strdup(cni_default_config);
        if (!text)
                return -ENOMEM;
        *ret_text = TAKE_PTR(text);
        *ret_file = TAKE_PTR(file);
        return 0;
}
