/* SPDX-License-Identifier: Apache-2.0 */
#include "common/redact.h"

#include "common/buffer.h"
#include "common/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#define KEY_BEGIN   "-----BEGIN "
#define PRIVATE_KEY "PRIVATE KEY"
#define KEY_END     "-----END "
#define URL_MARK    "://"

enum {
        JWT_LENGTH_MIN = 40,
        NAME_LENGTH_MAX = 64, /* number of bytes of a line in which the name of a value is searched
                               */
};

/* The rest of a word with one of these prefixes is secret. */
static const char *const secret_starts[] = {
        "AGE-SECRET-KEY-1", "AGE-PLUGIN-", "Bearer ", "Basic ", "ghp_",     "github_pat_",
        "glpat-",           "AKIA",        "xoxb-",   "xoxp-",  "sk_live_",
};

/* The value is secret if its name contains one of these words: "DB_PASSWORD=…". */
static const char *const secret_names[] = {
        "password",   "passwd",    "passphrase",  "pwd",           "secret",     "token",
        "apikey",     "api_key",   "api-key",     "authorization", "credential", "private_key",
        "access_key", "accesskey", "private-key", "access-key",
};

/* ---- text ---- */

typedef struct Redaction {
        const char *at;
        const char *start;
        Buffer out;
        bool has_failed;
} Redaction;

static void put(Redaction *redaction, const char *text, size_t length) {
        if (buffer_append(&redaction->out, text, length, SIZE_MAX) < 0)
                redaction->has_failed = true;
}

static void put_redacted(Redaction *redaction, size_t length) {
        put(redaction, REDACTED, strlen(REDACTED));
        redaction->at += length;
}

static size_t word_length(const char *text) {
        return strcspn(text, " \t\r\n\"'`,;<>()[]{}\\");
}

/* A PEM private key with its lines, or with "\n" in a JSON string. */
static bool redact_private_key(Redaction *redaction) {
        const char *line = redaction->at, *end;
        size_t heading;

        if (strncmp(line, KEY_BEGIN, strlen(KEY_BEGIN)) != 0)
                return false;
        heading = strcspn(line + strlen(KEY_BEGIN), "-\n");
        if (heading < strlen(PRIVATE_KEY) ||
            strncmp(line + strlen(KEY_BEGIN) + heading - strlen(PRIVATE_KEY), PRIVATE_KEY,
                    strlen(PRIVATE_KEY)) != 0)
                return false;
        end = strstr(line, KEY_END);
        put_redacted(redaction, end ? (size_t) (end - line) : strlen(line));
        return true;
}

static bool redact_known_start(Redaction *redaction) {
        for (size_t i = 0; i < N_ELEMENTS(secret_starts); i++) {
                size_t length = strlen(secret_starts[i]);

                if (strncasecmp(redaction->at, secret_starts[i], length) != 0 ||
                    word_length(redaction->at + length) == 0)
                        continue;
                put(redaction, redaction->at, length);
                redaction->at += length;
                put_redacted(redaction, word_length(redaction->at));
                return true;
        }
        return false;
}

/* A token like that of a service account: three base64 parts, the first of which is an object. */
static bool redact_jwt(Redaction *redaction) {
        size_t length = word_length(redaction->at);
        const char *dot = memchr(redaction->at, '.', length);

        if (strncmp(redaction->at, "eyJ", strlen("eyJ")) != 0 || length < JWT_LENGTH_MIN || !dot ||
            !memchr(dot + 1, '.', length - (size_t) (dot + 1 - redaction->at)))
                return false;
        put_redacted(redaction, length);
        return true;
}

/* "://user:password@": the user and the password. */
static bool redact_url_user(Redaction *redaction) {
        size_t mark = strlen(URL_MARK), length;

        if (strncmp(redaction->at, URL_MARK, mark) != 0)
                return false;
        length = strcspn(redaction->at + mark, "/?#@ \t\r\n\"'");
        if (redaction->at[mark + length] != '@')
                return false;
        put(redaction, redaction->at, mark);
        redaction->at += mark;
        put_redacted(redaction, length);
        return true;
}

static bool contains_secret_name(const char *name, size_t length) {
        for (size_t i = 0; i < N_ELEMENTS(secret_names); i++) {
                size_t n = strlen(secret_names[i]);

                for (size_t at = 0; at + n <= length; at++)
                        if (strncasecmp(name + at, secret_names[i], n) == 0)
                                return true;
        }
        return false;
}

static bool is_name_character(char c) {
        return isalnum((unsigned char) c) || strchr("_-.", c);
}

/* The length of the name that ends before 'at'. */
static size_t name_before(const Redaction *redaction, const char *at) {
        size_t length = 0;

        while (at > redaction->start && length < NAME_LENGTH_MAX && at[-1] &&
               is_name_character(at[-1])) {
                at--;
                length++;
        }
        return length;
}

/* "name=value", "name: value", "name": "value", also within a JSON string. */
static bool redact_named_value(Redaction *redaction) {
        const char *name_end = redaction->at, *value = redaction->at + 1;
        size_t name, length;
        char quote = '\0';

        if (*redaction->at != '=' && *redaction->at != ':')
                return false;
        while (name_end > redaction->start && strchr("\"'\\ ", name_end[-1]) && name_end[-1])
                name_end--;
        name = name_before(redaction, name_end);
        if (name == 0 || !contains_secret_name(name_end - name, name))
                return false;
        while (*value && strchr(" \t\\=>", *value))
                value++;
        if (*value == '"' || *value == '\'')
                quote = *value++;
        length =
                quote ? strcspn(value, quote == '"' ? "\"\n" : "'\n") : strcspn(value, " \t\r\n,;");
        if (length == 0)
                return false;
        put(redaction, redaction->at, (size_t) (value - redaction->at));
        redaction->at = value;
        put_redacted(redaction, length);
        return true;
}

char *redact_text(const char *text, RedactedText kind) {
        Redaction redaction = { .at = text, .start = text };

        while (*redaction.at && !redaction.has_failed) {
                if (redact_private_key(&redaction) || redact_known_start(&redaction) ||
                    redact_jwt(&redaction) || redact_url_user(&redaction) ||
                    (kind == REDACT_CONTAINER && redact_named_value(&redaction)))
                        continue;
                put(&redaction, redaction.at++, 1);
        }
        put(&redaction, "", 0);
        if (!redaction.has_failed)
                return buffer_take(&redaction.out);
        buffer_erase(&redaction.out);
        return NULL;
}

/* ---- JSON ---- */

static bool is_one_of(const char *key, const char *const *keys, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (streq(key, keys[i]))
                        return true;
        return false;
}

/* Masks all strings below it. */
static int mask_strings(json_t *json) {
        const char *key;
        json_t *value;
        size_t i;

        if (json_is_string(json))
                return json_string_set(json, REDACTED) < 0 ? -ENOMEM : 0;
        json_array_foreach(json, i, value)
                if (mask_strings(value) < 0)
                        return -ENOMEM;
        json_object_foreach(json, key, value)
                if (mask_strings(value) < 0)
                        return -ENOMEM;
        return 0;
}

/* Masks each item's member "value", for variables and headers. */
static int mask_values_of_items(json_t *items) {
        size_t i;
        json_t *item;

        json_array_foreach(items, i, item)
                if (mask_strings(json_object_get(item, "value")) < 0)
                        return -ENOMEM;
        return 0;
}

/* A member of an object whose values are secret. */
static int redact_member(const char *key, json_t *value) {
        static const char *const maps[] = { "data", "stringData", "binaryData",
                                            "kubectl.kubernetes.io/last-applied-configuration" };
        static const char *const lists[] = { "env", "httpHeaders" };

        if (is_one_of(key, maps, N_ELEMENTS(maps)) ||
            (json_is_string(value) && contains_secret_name(key, strlen(key)) &&
             !strstr(key, "Name") && !strstr(key, "secrets-at-rest")))
                return mask_strings(value);
        return is_one_of(key, lists, N_ELEMENTS(lists)) ? mask_values_of_items(value) : 0;
}

static int redact_string(json_t *json, RedactedText kind) {
        cleanup_free char *text = redact_text(json_string_value(json), kind);

        return text && json_string_set(json, text) == 0 ? 0 : -ENOMEM;
}

static int redact_value(json_t *json, RedactedText kind) {
        static const char *const commands[] = { "command", "args" };
        const char *key;
        json_t *value;
        size_t i;

        if (json_is_string(json))
                return redact_string(json, kind);
        json_array_foreach(json, i, value)
                if (redact_value(value, kind) < 0)
                        return -ENOMEM;
        json_object_foreach(json, key, value)
                if (redact_member(key, value) < 0 ||
                    redact_value(value, is_one_of(key, commands, N_ELEMENTS(commands))
                                                ? REDACT_CONTAINER
                                                : kind) < 0)
                        return -ENOMEM;
        return 0;
}

int redact_json(json_t *json) {
        return redact_value(json, REDACT_AGENT);
}
