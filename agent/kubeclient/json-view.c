/* SPDX-License-Identifier: Apache-2.0 */
/* Finds members of JSON text without parsing all of it. */

#include "agent/kubeclient/json-view.h"

#include "common/macros.h"
#include "common/utf8.h"

#include <stdlib.h>

enum {
        MESSAGE_MAX = 1000,
};

static bool is_json_blank(char c) {
        return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static const char *skip_json_blanks(const char *at, const char *end) {
        while (at < end && is_json_blank(*at))
                at++;
        return at;
}

/* Returns the byte after the closing quote, or NULL. 'at' is the opening one. */
static const char *skip_json_string(const char *at, const char *end) {
        for (at++; at < end; at++)
                if (*at == '\\')
                        at++;
                else if (*at == '"')
                        return at + 1;
        return NULL;
}

/* Returns the comma or bracket after a value, or NULL. Brackets are counted, not matched. */
static const char *skip_json_value(const char *at, const char *end) {
        for (size_t depth = 0; at && at < end;) {
                bool is_opening = *at == '{' || *at == '[', is_closing = *at == '}' || *at == ']';

                if (depth == 0 && (is_closing || *at == ','))
                        return at;
                depth += is_opening;
                depth -= is_closing;
                at = *at == '"' ? skip_json_string(at, end) : at + 1;
        }
        return NULL;
}

static JsonView trim_json_value(const char *from, const char *to) {
        while (to > from && is_json_blank(to[-1]))
                to--;
        return (JsonView){ from, (size_t) (to - from) };
}

typedef struct JsonPair {
        JsonView key, value;
        const char *end; /* the comma or bracket after it */
} JsonPair;

static bool read_json_pair(const char *at, const char *end, JsonPair *ret) {
        const char *key_end, *value;

        at = skip_json_blanks(at, end);
        key_end = at < end && *at == '"' ? skip_json_string(at, end) : NULL;
        value = key_end ? skip_json_blanks(key_end, end) : end;
        if (value == end || *value != ':')
                return false;
        value = skip_json_blanks(value + 1, end);
        *ret = (JsonPair){ .key = { at + 1, (size_t) (key_end - at) - 2 },
                           .end = skip_json_value(value, end) };
        if (!ret->end)
                return false;
        ret->value = trim_json_value(value, ret->end);
        return ret->value.length > 0;
}

JsonView json_view_member(JsonView object, const char *key) {
        const char *at = object.text, *end = at ? at + object.length : NULL;
        JsonPair pair;

        at = at ? skip_json_blanks(at, end) : NULL;
        if (!at || at == end || *at != '{')
                return (JsonView){ 0 };
        for (at++; read_json_pair(at, end, &pair); at = pair.end + 1) {
                if (pair.key.length == strlen(key) &&
                    memcmp(pair.key.text, key, pair.key.length) == 0)
                        return pair.value;
                if (*pair.end != ',')
                        break;
        }
        return (JsonView){ 0 };
}

JsonView json_view_item(JsonView list, size_t index) {
        const char *at = list.text, *end = at ? at + list.length : NULL;

        at = at ? skip_json_blanks(at, end) : NULL;
        if (!at || at == end || *at != '[')
                return (JsonView){ 0 };
        for (at++;; index--) {
                const char *item = skip_json_blanks(at, end),
                           *item_end = skip_json_value(item, end);
                JsonView value;

                if (!item_end || item_end == item)
                        return (JsonView){ 0 };
                value = trim_json_value(item, item_end);
                if (index == 0)
                        return value;
                if (*item_end != ',')
                        return (JsonView){ 0 };
                at = item_end + 1;
        }
}

JsonView json_view_string(JsonView value) {
        if (!value.text || value.length < 2 || value.text[0] != '"' ||
            value.text[value.length - 1] != '"' || memchr(value.text, '\\', value.length) ||
            memchr(value.text, '\0', value.length))
                return (JsonView){ 0 };
        return (JsonView){ value.text + 1, value.length - 2 };
}

char *json_view_dup(JsonView value) {
        JsonView string = json_view_string(value);

        return string.length > 0 ? strndup(string.text, string.length) : NULL;
}

/* The character to show for an escape. */
static char unescape_json_char(char c) {
        switch (c) {
        case '"':
        case '\\':
        case '/':
                return c;
        case 'u':
                return '?';
        default:
                return ' ';
        }
}

char *json_view_message(JsonView value) {
        const char *at = value.text, *end = at ? at + value.length - 1 : NULL;
        char *message, *to;

        if (!at || value.length < 3 || *at != '"' || *end != '"')
                return NULL;
        message = to = malloc(MESSAGE_MAX + 1);
        if (!message)
                return NULL;
        for (at++; at < end && to < message + MESSAGE_MAX; at++) {
                char c = *at;

                if (c == '\\' && at + 1 < end) {
                        c = unescape_json_char(at[1]);
                        at += at[1] == 'u' ? MIN(5, end - at - 1) : 1;
                }
                *to++ = c;
        }
        *to = '\0';
        utf8_sanitize(message);
        return message;
}

bool json_view_equals(JsonView value, const char *expected) {
        JsonView string = json_view_string(value);

        return string.text && string.length == strlen(expected) &&
               memcmp(string.text, expected, string.length) == 0;
}

long json_view_number(JsonView value) {
        long number = 0;

        if (!value.text || value.length == 0 || value.length > 9)
                return -1;
        for (size_t i = 0; i < value.length; i++) {
                if (value.text[i] < '0' || value.text[i] > '9')
                        return -1;
                number = number * 10 + (value.text[i] - '0');
        }
        return number;
}
