/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/pull/image-config.h"

#include "agent/image-helper/archive/tar-name.h"
#include "agent/image-helper/pull/document.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/strv.h"
#include "common/text.h"

#include <signal.h>

enum {
        STRING_LENGTH_MAX = 4096, /* limit for all lists: a record must stay small */
        STRINGS_MAX = 4096,
        STRINGS_BYTES_MAX = 256 * 1024
};

static int copy_config_string(const json_t *object, const char *key, char **ret, Error *reterr) {
        const json_t *value = json_object_get(object, key);
        const char *text = json_string_value(value);

        if (!value || json_is_null(value) || (text && text[0] == '\0'))
                return 0;
        if (!text)
                return error_setf(reterr, EBADMSG, "'%s' is not a string", key);
        if (strlen(text) > STRING_LENGTH_MAX)
                return error_setf(reterr, E2BIG, "'%s' is too long", key);
        *ret = strdup(text);
        return *ret ? 0 : -ENOMEM;
}

static int parse_diff_ids(ImageConfig *config, const json_t *rootfs, Error *reterr) {
        const json_t *ids = json_object_get(rootfs, "diff_ids"), *id;
        size_t i;

        if (!json_is_array(ids) || json_array_size(ids) == 0)
                return error_setf(reterr, EBADMSG, "the configuration has no layers");
        if (json_array_size(ids) > LAYERS_MAX)
                return error_setf(reterr, E2BIG, "it has more than %d layers", LAYERS_MAX);
        config->diff_ids = calloc(json_array_size(ids), sizeof(*config->diff_ids));
        if (!config->diff_ids)
                return -ENOMEM;
        json_array_foreach(ids, i, id)
                if (digest_parse(strna(json_string_value(id)), config->diff_ids[i]) < 0)
                        return error_setf(reterr, EBADMSG, "'%.128s' is not a sha256 digest",
                                          strna(json_string_value(id)));
        config->n_diff_ids = i;
        return 0;
}

static bool is_same_variable(const char *a, const char *b) {
        size_t n = strcspn(a, "=");

        return strcspn(b, "=") == n && memcmp(a, b, n) == 0;
}

/* Variables with an invalid name are dropped; of duplicates, the last one is used. */
static int clean_image_env(char ***env) {
        cleanup_strv char **clean = NULL;

        strv_foreach(item, *env) {
                bool again = false;

                if ((*item)[0] == '=' || !strchr(*item, '=') ||
                    memchr(*item, '\n', strcspn(*item, "=")))
                        continue;
                for (char **later = item + 1; *later && !again; later++)
                        again = is_same_variable(*item, *later);
                if (!again && strv_append(&clean, *item) < 0)
                        return -ENOMEM;
        }
        strv_free(*env);
        *env = TAKE_PTR(clean);
        return 0;
}

/* A directory below /proc could refer to one of the runtime's own descriptors, and thus to the
 * host. */
static int clean_working_dir(ImageConfig *config, Error *reterr) {
        cleanup_free char *clean = NULL;
        int r;

        if (!config->working_dir)
                return 0;
        r = tar_name_clean(config->working_dir, &clean, NULL);
        if (r == -ENOMEM)
                return r;
        if (r < 0 || streq(clean, "proc") || strncmp(clean, "proc/", 5) == 0)
                return error_setf(reterr, EINVAL, "the working directory '%.256s' is refused",
                                  config->working_dir);
        free(config->working_dir);
        config->working_dir = text_format("/%s", clean);
        return config->working_dir ? 0 : -ENOMEM;
}

static int format_signal(int number, char **ret) {
        const char *abbreviation = number > 0 ? sigabbrev_np(number) : NULL;

        if (abbreviation)
                *ret = text_format("SIG%s", abbreviation);
        else if (number == SIGRTMIN)
                *ret = strdup("SIGRTMIN");
        else if (number > SIGRTMIN && number <= SIGRTMAX)
                *ret = text_format("SIGRTMIN+%d", number - SIGRTMIN);
        else
                return -EINVAL;
        return *ret ? 0 : -ENOMEM;
}

int normalize_signal_name(const char *text, char **ret) {
        const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;
        char *end = NULL;
        long number;

        if (name[0] >= '0' && name[0] <= '9') {
                number = strtol(name, &end, 10);
                return *end || number > SIGRTMAX ? -EINVAL : format_signal((int) number, ret);
        }
        if (strncasecmp(name, "RTMIN", 5) == 0 || strncasecmp(name, "RTMAX", 5) == 0) {
                number = name[5] ? strtol(name + 5, &end, 10) : 0;
                if (name[5] &&
                    (*end || number > SIGRTMAX - SIGRTMIN || number < SIGRTMIN - SIGRTMAX))
                        return -EINVAL;
                number += strncasecmp(name, "RTMIN", 5) == 0 ? SIGRTMIN : SIGRTMAX;
                return number < SIGRTMIN ? -EINVAL : format_signal((int) number, ret);
        }
        for (int i = 1; i < SIGRTMIN; i++)
                if (sigabbrev_np(i) && strcasecmp(name, sigabbrev_np(i)) == 0)
                        return format_signal(i, ret);
        return -EINVAL;
}

static int clean_stop_signal(ImageConfig *config) {
        char *normal = NULL;
        int r = 0;

        if (config->stop_signal)
                r = normalize_signal_name(config->stop_signal, &normal);
        free(config->stop_signal);
        config->stop_signal = normal;
        return r == -ENOMEM ? r : 0;
}

static int append_volume(ImageConfig *config, const char *path, Error *reterr) {
        cleanup_free char *clean = NULL;

        if (strlen(path) > STRING_LENGTH_MAX)
                return error_setf(reterr, E2BIG, "a path in 'Volumes' is too long");
        clean = path_clean(path);
        if (!clean)
                return -ENOMEM;
        if (streq(clean, "/") || strv_contains(config->volumes, clean))
                return 0;
        return strv_append(&config->volumes, clean);
}

/* An object whose keys are paths in the image; the values have no meaning. */
static int parse_volumes(ImageConfig *config, const json_t *volumes, Error *reterr) {
        const char *path;
        json_t *value;
        int r;

        if (!volumes || json_is_null(volumes))
                return 0;
        if (!json_is_object(volumes))
                return error_setf(reterr, EBADMSG, "'Volumes' is not an object");
        if (json_object_size(volumes) > IMAGE_VOLUMES_MAX)
                return error_setf(reterr, E2BIG, "it has more than %d volumes", IMAGE_VOLUMES_MAX);
        json_object_foreach((json_t *) (uintptr_t) volumes, path, value) {
                r = append_volume(config, path, reterr);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int check_strings(const ImageConfig *config, Error *reterr) {
        char *const *const arrays[] = { config->entrypoint, config->command, config->env,
                                        config->volumes };
        size_t n = 0, bytes = 0;

        for (size_t i = 0; i < N_ELEMENTS(arrays); i++)
                for (char *const *item = arrays[i]; item && *item; item++, n++)
                        bytes += strlen(*item) + 1;
        if (n > STRINGS_MAX || bytes > STRINGS_BYTES_MAX)
                return error_setf(reterr, E2BIG, "command, environment and volumes are too long");
        return 0;
}

static int parse_process_config(ImageConfig *config, const json_t *process, Error *reterr) {
        const struct {
                const char *key;
                char ***strv;
                char **string;
        } fields[] = {
                { "Entrypoint", &config->entrypoint, NULL },
                { "Cmd", &config->command, NULL },
                { "Env", &config->env, NULL },
                { "WorkingDir", NULL, &config->working_dir },
                { "User", NULL, &config->user },
                { "StopSignal", NULL, &config->stop_signal },
        };
        int r;

        if (!process || json_is_null(process))
                return 0;
        if (!json_is_object(process))
                return error_setf(reterr, EBADMSG, "'config' is not an object");
        for (size_t i = 0; i < N_ELEMENTS(fields); i++) {
                r = fields[i].strv
                            ? document_strv(process, fields[i].key, fields[i].strv, reterr)
                            : copy_config_string(process, fields[i].key, fields[i].string, reterr);
                if (r < 0)
                        return r;
        }
        r = parse_volumes(config, json_object_get(process, "Volumes"), reterr);
        if (r < 0)
                return r;
        r = check_strings(config, reterr);
        if (r < 0)
                return r;
        r = clean_image_env(&config->env);
        if (r < 0)
                return r;
        r = clean_working_dir(config, reterr);
        if (r < 0)
                return r;
        return clean_stop_signal(config);
}

int image_config_parse(const char *text, size_t length, ImageConfig **ret, Error *reterr) {
        cleanup_with(image_config_freep) ImageConfig *config = calloc(1, sizeof(*config));
        cleanup_json json_t *json = NULL;
        const json_t *rootfs;
        int r;

        if (!config)
                return -ENOMEM;
        r = document_parse(text, length, &json, reterr);
        if (r < 0)
                return r;
        rootfs = json_object_get(json, "rootfs");
        if (!streq(strna(json_text(rootfs, "type")), "layers"))
                return error_setf(reterr, EBADMSG, "it has no root file system of layers");
        r = parse_diff_ids(config, rootfs, reterr);
        if (r < 0)
                return r;
        r = copy_config_string(json, "os", &config->os, reterr);
        if (r < 0)
                return r;
        r = copy_config_string(json, "architecture", &config->architecture, reterr);
        if (r < 0)
                return r;
        r = copy_config_string(json, "variant", &config->variant, reterr);
        if (r < 0)
                return r;
        r = parse_process_config(config, json_object_get(json, "config"), reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(config);
        return 0;
}

ImageConfig *image_config_free(ImageConfig *config) {
        if (!config)
                return NULL;
        free(config->os);
        free(config->architecture);
        free(config->variant);
        strv_free(config->entrypoint);
        strv_free(config->command);
        strv_free(config->env);
        strv_free(config->volumes);
        free(config->working_dir);
        free(config->user);
        free(config->stop_signal);
        free(config->diff_ids);
        free(config);
        return NULL;
}
