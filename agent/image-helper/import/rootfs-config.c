/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/image-helper/import/rootfs-config.h"

#include "common/strv.h"

enum {
        WORDS_MAX = 256
};

#define BLANKS " \t"

typedef struct Instruction {
        const char *name;   /* name in a Dockerfile */
        const char *member; /* member of the configuration */
        int (*apply)(json_t *config, const char *member, const char *value, Error *reterr);
} Instruction;

/* Also fails if jansson could not copy a text. */
static int set_member(json_t *object, const char *key, json_t *value) {
        return json_object_set_new(object, key, value) < 0 ? -ENOMEM : 0;
}

/* The object in a member of that name, which is created if it is missing. */
static json_t *open_member(json_t *config, const char *member) {
        json_t *object = json_object_get(config, member);

        if (json_is_object(object))
                return object;
        return set_member(config, member, json_object()) < 0 ? NULL
                                                             : json_object_get(config, member);
}

/* ---- words ---- */

/* Appends the next word, without its quotes, and advances '*text'. 1, 0 at the end, or -errno. */
static int take_word(const char **text, char ***words, Error *reterr) {
        const char *c = *text + strspn(*text, BLANKS);
        cleanup_free char *word = NULL;
        char quote = '\0';
        size_t n = 0;

        if (*c == '\0')
                return 0;
        word = calloc(1, strlen(c) + 1);
        if (!word)
                return -ENOMEM;
        for (; *c && (quote || !strchr(BLANKS, *c)); c++) {
                if (*c == '\\' && quote != '\'' && c[1])
                        word[n++] = *++c;
                else if (*c == quote)
                        quote = '\0';
                else if (!quote && (*c == '"' || *c == '\''))
                        quote = *c;
                else
                        word[n++] = *c;
        }
        if (quote)
                return error_setf(reterr, EINVAL, "a quotation mark is not closed");
        if (strv_length(*words) >= WORDS_MAX)
                return error_setf(reterr, E2BIG, "it has more than %d words", WORDS_MAX);
        *text = c;
        return strv_append(words, word) < 0 ? -ENOMEM : 1;
}

static int split_words(const char *value, char ***ret, Error *reterr) {
        int r;

        do
                r = take_word(&value, ret, reterr);
        while (r > 0);
        return r;
}

static int parse_word_array(const char *value, json_t **ret, Error *reterr) {
        cleanup_json json_t *array = NULL;
        const json_t *word;
        size_t i;
        int r = document_parse(value, strlen(value), &array, NULL);

        if (r == -ENOMEM)
                return r;
        if (r < 0 || !json_is_array(array))
                return error_setf(reterr, EINVAL,
                                  "'%.256s' is not a JSON array; write it as '[\"/bin/app\", "
                                  "\"-x\"]', between single quotes",
                                  value);
        json_array_foreach(array, i, word)
                if (!json_is_string(word))
                        return error_setf(reterr, EINVAL, "element %zu is not a string", i);
        *ret = TAKE_PTR(array);
        return 0;
}

/* ---- instructions ---- */

static int apply_text(json_t *config, const char *member, const char *value, Error *reterr) {
        return set_member(config, member, json_string(value));
}

static int apply_directory(json_t *config, const char *member, const char *value, Error *reterr) {
        if (value[0] != '/')
                return error_setf(reterr, EINVAL, "'%.256s' is not an absolute path", value);
        return apply_text(config, member, value, reterr);
}

/* A text that is not an array is a shell command, as in a Dockerfile. */
static int apply_command(json_t *config, const char *member, const char *value, Error *reterr) {
        json_t *array = NULL;
        int r;

        if (value[0] != '[')
                return set_member(config, member, json_pack("[s, s, s]", "/bin/sh", "-c", value));
        r = parse_word_array(value, &array, reterr);
        return r < 0 ? r : set_member(config, member, array);
}

/* "A=b C='d e'", or "A b c" for a single variable. */
static int split_pairs(const char *value, char ***ret, Error *reterr) {
        cleanup_strv char **words = NULL;
        size_t key = strcspn(value, BLANKS "=");
        int r;

        if (value[key] != '=' && value[key] != '\0')
                return strv_appendf(ret, "%.*s=%s", (int) key, value,
                                    value + key + strspn(value + key, BLANKS));
        r = split_words(value, &words, reterr);
        if (r < 0)
                return r;
        strv_foreach(word, words)
                if (!strchr(*word, '=') || (*word)[0] == '=')
                        return error_setf(reterr, EINVAL, "'%.256s' is not NAME=VALUE", *word);
        *ret = TAKE_PTR(words);
        return 0;
}

/* If the name exists, its value is replaced. */
static int set_variable(json_t *env, const char *pair) {
        size_t name = strcspn(pair, "=") + 1, i;
        const json_t *other;

        json_array_foreach(env, i, other)
                if (strncmp(strna(json_string_value(other)), pair, name) == 0)
                        return json_array_set_new(env, i, json_string(pair)) < 0 ? -ENOMEM : 0;
        return json_array_append_new(env, json_string(pair)) < 0 ? -ENOMEM : 0;
}

static int apply_environment(json_t *config, const char *member, const char *value, Error *reterr) {
        cleanup_strv char **pairs = NULL;
        int r = split_pairs(value, &pairs, reterr);

        if (r >= 0 && !json_is_array(json_object_get(config, member)))
                r = set_member(config, member, json_array());
        strv_foreach(pair, pairs)
                if (r >= 0)
                        r = set_variable(json_object_get(config, member), *pair);
        return r;
}

static int apply_labels(json_t *config, const char *member, const char *value, Error *reterr) {
        cleanup_strv char **pairs = NULL;
        json_t *labels = open_member(config, member);
        int r = split_pairs(value, &pairs, reterr);

        if (!labels)
                return -ENOMEM;
        strv_foreach(pair, pairs) {
                char *equals = strchr(*pair, '=');

                *equals = '\0';
                if (r >= 0)
                        r = set_member(labels, *pair, json_string(equals + 1));
        }
        return r;
}

static int apply_ports(json_t *config, const char *member, const char *value, Error *reterr) {
        cleanup_strv char **words = NULL;
        json_t *ports = open_member(config, member);
        int r = split_words(value, &words, reterr);

        if (!ports)
                return -ENOMEM;
        strv_foreach(word, words) {
                size_t digits = strspn(*word, "0123456789");
                const char *protocol = *word + digits;
                char name[16];

                if (digits == 0 || digits > 5 ||
                    (protocol[0] && !streq(protocol, "/tcp") && !streq(protocol, "/udp") &&
                     !streq(protocol, "/sctp")))
                        return error_setf(reterr, EINVAL, "'%.256s' is not a port, such as 80/tcp",
                                          *word);
                (void) snprintf(name, sizeof(name), "%s%s", *word, protocol[0] ? "" : "/tcp");
                if (r >= 0)
                        r = set_member(ports, name, json_object());
        }
        return r;
}

static int split_volumes(const char *value, char ***ret, Error *reterr) {
        cleanup_json json_t *array = NULL;
        const json_t *word;
        size_t i;
        int r;

        if (value[0] != '[')
                return split_words(value, ret, reterr);
        r = parse_word_array(value, &array, reterr);
        json_array_foreach(array, i, word)
                if (r >= 0)
                        r = strv_append(ret, json_string_value(word));
        return r;
}

static int apply_volumes(json_t *config, const char *member, const char *value, Error *reterr) {
        cleanup_strv char **paths = NULL;
        json_t *volumes = open_member(config, member);
        int r = split_volumes(value, &paths, reterr);

        if (!volumes)
                return -ENOMEM;
        strv_foreach(path, paths) {
                if ((*path)[0] != '/')
                        return error_setf(reterr, EINVAL, "'%.256s' is not an absolute path",
                                          *path);
                if (r >= 0)
                        r = set_member(volumes, *path, json_object());
        }
        return r;
}

static const Instruction instructions[] = {
        { "CMD", "Cmd", apply_command },
        { "ENTRYPOINT", "Entrypoint", apply_command },
        { "ENV", "Env", apply_environment },
        { "EXPOSE", "ExposedPorts", apply_ports },
        { "LABEL", "Labels", apply_labels },
        { "STOPSIGNAL", "StopSignal", apply_text },
        { "USER", "User", apply_text },
        { "VOLUME", "Volumes", apply_volumes },
        { "WORKDIR", "WorkingDir", apply_directory },
};

static const Instruction *find_instruction(const char *name, size_t length) {
        for (size_t i = 0; i < N_ELEMENTS(instructions); i++) {
                const Instruction *row = &instructions[i];

                if ((strlen(row->name) == length && strncasecmp(name, row->name, length) == 0) ||
                    (strlen(row->member) == length && strncasecmp(name, row->member, length) == 0))
                        return row;
        }
        return NULL;
}

static int apply_object(json_t *config, const char *change, Error *reterr) {
        cleanup_json json_t *object = NULL;
        const char *key;
        json_t *value;
        int r = document_parse(change, strlen(change), &object, reterr);

        if (r < 0)
                return r;
        json_object_foreach(object, key, value) {
                const Instruction *row = find_instruction(key, strlen(key));

                if (!row || !streq(key, row->member))
                        return error_setf(reterr, EINVAL,
                                          "'%.128s' is not a member of an image's configuration",
                                          key);
                if (json_object_set(config, key, value) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int apply_instruction(json_t *config, const char *change, Error *reterr) {
        size_t length = strcspn(change, BLANKS "=");
        const Instruction *row = find_instruction(change, length);
        const char *value = change + length;
        int r;

        if (!row)
                return error_setf(reterr, EINVAL,
                                  "'%.*s' is not one of CMD, ENTRYPOINT, ENV, EXPOSE, LABEL, "
                                  "STOPSIGNAL, USER, VOLUME and WORKDIR",
                                  (int) MIN(length, (size_t) 128), change);
        value += strspn(value, BLANKS);
        value += value[0] == '=' && value == change + length;
        value += strspn(value, BLANKS);
        if (value[0] == '\0')
                return error_setf(reterr, EINVAL, "%s needs a value", row->name);
        r = row->apply(config, row->member, value, reterr);
        return r < 0 ? error_prefixf(reterr, r, "%s", row->name) : 0;
}

int rootfs_config_apply(json_t *config, const char *change, Error *reterr) {
        change += strspn(change, BLANKS);
        return change[0] == '{' ? apply_object(config, change, reterr)
                                : apply_instruction(config, change, reterr);
}
