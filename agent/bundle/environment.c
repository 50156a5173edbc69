/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments and the environment of a container's first process. */

#include "agent/bundle/environment.h"

#include "common/cleanup.h"
#include "common/strv.h"

static const char default_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/* The end of the reference at 'c', or NULL if none starts there. 'last' is the last ')' of the
 * text, or NULL: an unclosed reference is not searched repeatedly. */
static const char *find_reference_end(const char *c, const char *last) {
        return c[0] == '$' && c[1] == '(' && last && last - c > 1 ? strchr(c + 2, ')') : NULL;
}

typedef struct Expansion {
        const VariableSet *variables;
        FILE *out;
        size_t length;
        char *missing;
} Expansion;

/* An unknown reference is copied as a whole, so that a reference inside it is not expanded. */
static int expand_reference(Expansion *e, const char *start, const char *end) {
        size_t length = (size_t) (end - start - 2);
        const char *value = variable_set_find(e->variables, start + 2, length);

        if (!e->missing && !(value && *value)) {
                e->missing = strndup(start + 2, length);
                if (!e->missing)
                        return -ENOMEM;
        }
        length = value ? strlen(value) : length + 3;
        (void) fwrite(value ? value : start, 1, length, e->out);
        e->length += length;
        return value ? 1 : 0;
}

static int expand_text(Expansion *e, const char *text) {
        const char *last = strrchr(text, ')');
        bool is_replaced = false;

        for (const char *c = text; *c; c++) {
                const char *end = find_reference_end(c, last);

                if (end) {
                        int r = expand_reference(e, c, end);

                        if (r < 0)
                                return r;
                        is_replaced = is_replaced || r > 0;
                        c = end;
                } else {
                        (void) fputc(*c, e->out);
                        e->length++;
                        c += c[0] == '$' && c[1] == '$';
                }
                if (is_replaced && e->length > EXPANSION_MAX)
                        return -E2BIG;
        }
        return 0;
}

/* third_party/forked/golang/expansion: "$(NAME)" becomes the value, "$$" becomes "$", and an
 * unknown reference stays as written. */
int expand_variables(const char *text, const VariableSet *variables, char **ret,
                     char **ret_missing) {
        cleanup_free char *expanded = NULL, *missing = NULL;
        cleanup_fclose FILE *out = NULL;
        Expansion e = { .variables = variables };
        size_t size;
        int r;

        out = open_memstream(&expanded, &size);
        if (!out)
                return -ENOMEM;
        e.out = out;
        r = expand_text(&e, text);
        missing = e.missing;
        if (r < 0)
                return r;
        if (ferror(out) || fclose(TAKE_PTR(out)) != 0 || !expanded)
                return -ENOMEM;
        *ret = TAKE_PTR(expanded);
        if (ret_missing)
                *ret_missing = TAKE_PTR(missing);
        return 0;
}

static int put_environment(VariableSet *env, const Image *image, const char *hostname,
                           const VariableSet *variables) {
        int r = variable_set_put_entries(env, image->env);

        if (r < 0)
                return r;
        r = variable_set_put_default(env, "PATH", default_path);
        if (r < 0)
                return r;
        r = variable_set_put(env, "HOSTNAME", hostname);
        if (r < 0)
                return r;
        return variable_set_put_entries(env, variables->strv);
}

int too_large_environment(Error *reterr) {
        return error_setf(reterr, BUNDLE_CONFIG_ERROR,
                          "the environment takes more than %d bytes, which no process can have",
                          EXEC_BYTES_MAX);
}

int container_environment(const Image *image, const char *hostname, const VariableSet *variables,
                          VariableSet *ret, Error *reterr) {
        cleanup_with(variable_set_done) VariableSet env = VARIABLE_SET_NULL;
        int r = put_environment(&env, image, hostname, variables);

        if (r < 0)
                return r == -E2BIG ? too_large_environment(reterr) : r;
        *ret = env;
        env = VARIABLE_SET_NULL;
        return 0;
}

static int expand_word(const char *word, const VariableSet *variables, size_t *bytes, char **ret,
                       Error *reterr) {
        int r = expand_variables(word, variables, ret, NULL);

        if (r == -E2BIG)
                return error_setf(reterr, E2BIG,
                                  "is longer than %d bytes when its variables are expanded",
                                  EXPANSION_MAX);
        if (r < 0)
                return r;
        *bytes += exec_string_bytes(*ret);
        if (*bytes > EXEC_BYTES_MAX)
                return error_setf(
                        reterr, E2BIG,
                        "with those before it takes more than %d bytes, which no process can have",
                        EXEC_BYTES_MAX);
        return 0;
}

int expand_words(const char *field, char *const *words, const VariableSet *variables, char ***ret,
                 Error *reterr) {
        cleanup_strv char **expanded = calloc(strv_length(words) + 1, sizeof(char *));
        size_t bytes = 0;

        if (!expanded)
                return -ENOMEM;
        for (size_t i = 0; words && words[i]; i++) {
                int r = expand_word(words[i], variables, &bytes, &expanded[i], reterr);

                if (r == -E2BIG)
                        return error_prefixf(reterr, r, "%s[%zu]", field, i);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(expanded);
        return 0;
}

static int extend_expanded(char ***argv, const char *field, char *const *words,
                           const VariableSet *variables, Error *reterr) {
        cleanup_strv char **expanded = NULL;
        int r = expand_words(field, words, variables, &expanded, reterr);

        if (r < 0)
                return r == -E2BIG ? -BUNDLE_CONFIG_ERROR : r;
        return strv_extend(argv, expanded);
}

/* An image resets the entrypoint of its base image by setting it to one empty string. */
static char *const *image_entrypoint(const Image *image) {
        char *const *entrypoint = image->entrypoint;

        return strv_length(entrypoint) == 1 && entrypoint[0][0] == '\0' ? NULL : entrypoint;
}

int container_argv(const Container *container, const Image *image, const VariableSet *variables,
                   char ***ret, Error *reterr) {
        cleanup_strv char **argv = NULL;
        int r;

        /* Variables in the arguments of an image are not expanded. */
        if (container->command)
                r = extend_expanded(&argv, "command", container->command, variables, reterr);
        else
                r = strv_extend(&argv, image_entrypoint(image));
        if (r < 0)
                return r;
        if (container->args)
                r = extend_expanded(&argv, "args", container->args, variables, reterr);
        else if (!container->command)
                r = strv_extend(&argv, image->command);
        if (r < 0)
                return r;
        if (!argv || !argv[0])
                return error_setf(
                        reterr, EINVAL,
                        "no command specified: neither the pod nor the image '%s' has one",
                        container->image);
        *ret = TAKE_PTR(argv);
        return 0;
}
