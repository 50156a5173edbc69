/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments and the environment of a container's first process. */

#include "agent/bundle/environment.h"

#include "common/cleanup.h"
#include "common/strv.h"

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static const char *env_value(char *const *env, const char *name, size_t length) {
        for (size_t i = 0; env && env[i]; i++)
                if (strncmp(env[i], name, length) == 0 && env[i][length] == '=')
                        return env[i] + length + 1;
        return NULL;
}

int env_set(char ***env, const char *name, const char *value) {
        size_t length = strlen(name);

        for (size_t i = 0; *env && (*env)[i]; i++)
                if (strncmp((*env)[i], name, length) == 0 && (*env)[i][length] == '=') {
                        char *entry;

                        if (asprintf(&entry, "%s=%s", name, value) < 0)
                                return -ENOMEM;
                        free((*env)[i]);
                        (*env)[i] = entry;
                        return 0;
                }
        return strv_appendf(env, "%s=%s", name, value);
}

/* Kubernetes' expansion (third_party/forked/golang/expansion): "$(NAME)" becomes the value, "$$"
 * becomes "$", and an unknown reference stays as written. */
int expand_variables(const char *text, char *const *env, char **ret, char **ret_missing) {
        cleanup_free char *expanded = NULL, *missing = NULL;
        cleanup_fclose FILE *out = NULL;
        size_t size;

        out = open_memstream(&expanded, &size);
        if (!out)
                return -ENOMEM;
        for (const char *c = text; *c; c++) {
                const char *end, *value;

                if (c[0] == '$' && c[1] == '$') {
                        (void) fputc('$', out);
                        c++;
                        continue;
                }
                end = c[0] == '$' && c[1] == '(' ? strchr(c + 2, ')') : NULL;
                value = end ? env_value(env, c + 2, (size_t) (end - c - 2)) : NULL;
                if (end && !missing && !(value && *value))
                        missing = strndup(c + 2, (size_t) (end - c - 2));
                if (!value) {
                        (void) fputc(*c, out);
                        continue;
                }
                (void) fputs(value, out);
                c = end;
        }
        if (ferror(out) || fclose(TAKE_PTR(out)) != 0 || !expanded)
                return -ENOMEM;
        *ret = TAKE_PTR(expanded);
        if (ret_missing)
                *ret_missing = TAKE_PTR(missing);
        return 0;
}

int env_set_default(char ***env, const char *name, const char *value) {
        return env_value(*env, name, strlen(name)) ? 0 : env_set(env, name, value);
}

int container_environment(const Image *image, const char *hostname, char *const *variables,
                          char ***ret) {
        cleanup_strv char **env = NULL;
        int r;

        r = strv_extend(&env, image->env);
        if (r < 0)
                return r;
        r = env_set_default(&env, "PATH", default_path);
        if (r < 0)
                return r;
        r = env_set(&env, "HOSTNAME", hostname);
        if (r < 0)
                return r;
        for (size_t i = 0; variables && variables[i]; i++) {
                const char *equals = strchr(variables[i], '=');
                cleanup_free char *name = strndup(variables[i], (size_t) (equals - variables[i]));

                r = name ? env_set(&env, name, equals + 1) : -ENOMEM;
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(env);
        return 0;
}

static int extend_expanded(char ***argv, char *const *words, char *const *env) {
        for (size_t i = 0; words && words[i]; i++) {
                cleanup_free char *word = NULL;
                int r = expand_variables(words[i], env, &word, NULL);

                if (r < 0)
                        return r;
                r = strv_append(argv, word);
                if (r < 0)
                        return r;
        }
        return 0;
}

int container_argv(const Container *container, const Image *image, char *const *env, char ***ret,
                   Error *reterr) {
        cleanup_strv char **argv = NULL;
        int r;

        /* Variables in the arguments of an image are not expanded. */
        if (container->command)
                r = extend_expanded(&argv, container->command, env);
        else
                r = strv_extend(&argv, image->entrypoint);
        if (r < 0)
                return r;
        if (container->args)
                r = extend_expanded(&argv, container->args, env);
        else if (!container->command)
                r = strv_extend(&argv, image->command);
        if (r < 0)
                return r;
        if (!argv || !argv[0][0])
                return error_setf(
                        reterr, EINVAL,
                        "no command specified: neither the pod nor the image '%s' has one",
                        container->image);
        *ret = TAKE_PTR(argv);
        return 0;
}
