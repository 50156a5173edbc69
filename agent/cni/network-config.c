/* SPDX-License-Identifier: Apache-2.0 */

/* Parsing and validation of a network configuration list. A plugin's type is the name of a file
 * that is executed as root, so it must be a name and not a path. config-directory.c reads the file.
 */

#include "agent/cni/network-config.h"

#include "agent/cni/limits.h"
#include "common/json-text.h"
#include "common/macros.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

enum {
        DEPTH_MAX = 32,
        NAME_MAX_LENGTH = 128,
};

/* The versions in ascending order. 1.1.0 adds commands that are not used here. */
static const char *const versions[] = { "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0" };

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

/* A name of one or more such characters, other than "." and "..". */
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
        const char *type = json_text(plugin, "type");

        if (!json_is_object(plugin))
                return error_setf(reterr, EINVAL, "plugins[%zu]: must be an object", i);
        if (!type)
                return error_setf(reterr, EINVAL, "plugins[%zu].type: is missing", i);
        if (!is_cni_name(type))
                return error_setf(reterr, EINVAL,
                                  "plugins[%zu].type: must be a file name of letters, digits, "
                                  "'_', '.' and '-', not '%.64s'",
                                  i, type);
        return 0;
}

static int check_config_list(const json_t *list, Error *reterr) {
        const char *name = json_text(list, "name");
        const char *version = json_text(list, "cniVersion");
        const json_t *plugins = json_object_get(list, "plugins");

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
        for (size_t i = 0; i < json_array_size(plugins); i++) {
                int r = check_plugin_config(json_array_get(plugins, i), i, reterr);

                if (r < 0)
                        return r;
        }
        return 0;
}

/* Wraps a file with a single plugin in a list of one. */
static json_t *wrap_single_plugin(json_t *plugin) {
        return json_pack("{s:O*, s:O*, s:[O]}", "name", json_object_get(plugin, "name"),
                         "cniVersion", json_object_get(plugin, "cniVersion"), "plugins", plugin);
}

int cni_config_list_parse(const char *text, json_t **ret, Error *reterr) {
        json_error_t problem;
        json_t *root;
        int r = json_parse_text(text, strlen(text), JSON_REJECT_DUPLICATES, &root, &problem);

        if (r == -ENOMEM)
                return r;
        if (r < 0)
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
