/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/yaml.h"

#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/macros.h"
#include "common/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <yaml.h>

enum {
        DEPTH_MAX = 256
};

static bool is_word_of_yaml(const char *text) {
        static const char *const words[] = {
                "",  "~", "null", "true", "false", "yes",   "no",    "on",   "off",
                "y", "n", "=",    "<<",   ".inf",  "-.inf", "+.inf", ".nan",
        };

        for (size_t i = 0; i < N_ELEMENTS(words); i++)
                if (strcasecmp(text, words[i]) == 0)
                        return true;
        return false;
}

/* Digits with the underscores that YAML 1.1 allows in them. */
static size_t span_digits(const char *text, const char *digits) {
        size_t n = 0;

        while (text[n] && (strchr(digits, text[n]) || text[n] == '_'))
                n++;
        return n;
}

/* "0x1f", "0b101", "0o17". */
static bool is_based_number(const char *text) {
        static const char *const digits[] = { "xX0123456789abcdefABCDEF", "bB01", "oO01234567" };

        if (text[0] != '0')
                return false;
        for (size_t i = 0; i < N_ELEMENTS(digits); i++)
                if ((text[1] == digits[i][0] || text[1] == digits[i][1]) && text[2] &&
                    text[2 + span_digits(text + 2, digits[i] + 2)] == '\0')
                        return true;
        return false;
}

/* "1", "-1.5e3", ".5", "1_000", and minutes as in "1:30". */
static bool is_decimal_number(const char *text) {
        size_t whole = span_digits(text, "0123456789"), fraction = 0;

        text += whole;
        while (whole > 0 && *text == ':' && isdigit((unsigned char) text[1]))
                text += 1 + span_digits(text + 1, "0123456789");
        if (*text == '.') {
                fraction = span_digits(text + 1, "0123456789");
                text += 1 + fraction;
        }
        if (whole + fraction == 0)
                return false;
        if (*text == 'e' || *text == 'E') {
                text++;
                text += *text == '+' || *text == '-';
                if (!isdigit((unsigned char) *text))
                        return false;
                text += strspn(text, "0123456789");
        }
        return *text == '\0';
}

/* "2026-01-02", and the optional rest of a timestamp. */
static bool is_time(const char *text) {
        return strspn(text, "0123456789") == 4 && text[4] == '-' &&
               isdigit((unsigned char) text[5]) && strchr(text + 5, '-');
}

bool yaml_needs_quotes(const char *text) {
        const char *number = text + (*text == '-' || *text == '+');

        return is_word_of_yaml(text) || is_based_number(number) || is_decimal_number(number) ||
               is_time(text);
}

static int emit_yaml_event(yaml_emitter_t *emitter, yaml_event_t *event, int is_made) {
        if (!is_made)
                return -ENOMEM;
        /* The emitter owns the event from here on, even on failure. */
        return yaml_emitter_emit(emitter, event) ? 0 : -EIO;
}

static int emit_scalar(yaml_emitter_t *emitter, const char *text, yaml_scalar_style_t style) {
        yaml_event_t event;
        bool is_plain = style == YAML_PLAIN_SCALAR_STYLE;

        return emit_yaml_event(
                emitter, &event,
                yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *) text,
                                             (int) strlen(text), is_plain, 1, style));
}

static int emit_string(yaml_emitter_t *emitter, const char *text) {
        if (yaml_needs_quotes(text))
                return emit_scalar(emitter, text, YAML_DOUBLE_QUOTED_SCALAR_STYLE);
        if (strchr(text, '\n'))
                return emit_scalar(emitter, text, YAML_LITERAL_SCALAR_STYLE);
        return emit_scalar(emitter, text, YAML_PLAIN_SCALAR_STYLE);
}

static int emit_value(yaml_emitter_t *emitter, json_t *json, unsigned depth);

static int compare_json_keys(const void *a, const void *b) {
        return strcmp(*(const char *const *) a, *(const char *const *) b);
}

const char **yaml_sorted_keys(json_t *object) {
        const char **keys = calloc(json_object_size(object) + 1, sizeof(*keys));
        const char *key;
        json_t *value;
        size_t n = 0;

        if (!keys)
                return NULL;
        json_object_foreach(object, key, value)
                keys[n++] = key;
        if (n > 1)
                qsort(keys, n, sizeof(*keys), compare_json_keys);
        return keys;
}

static int emit_object(yaml_emitter_t *emitter, json_t *json, unsigned depth) {
        cleanup_free const char **keys = yaml_sorted_keys(json);
        yaml_event_t event;
        yaml_mapping_style_t style =
                json_object_size(json) > 0 ? YAML_BLOCK_MAPPING_STYLE : YAML_FLOW_MAPPING_STYLE;
        int r;

        if (!keys)
                return -ENOMEM;
        r = emit_yaml_event(emitter, &event,
                            yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, style));
        if (r < 0)
                return r;
        for (size_t i = 0; keys[i]; i++) {
                r = emit_string(emitter, keys[i]);
                if (r < 0)
                        return r;
                r = emit_value(emitter, json_object_get(json, keys[i]), depth);
                if (r < 0)
                        return r;
        }
        return emit_yaml_event(emitter, &event, yaml_mapping_end_event_initialize(&event));
}

static int emit_array(yaml_emitter_t *emitter, json_t *json, unsigned depth) {
        yaml_sequence_style_t style =
                json_array_size(json) > 0 ? YAML_BLOCK_SEQUENCE_STYLE : YAML_FLOW_SEQUENCE_STYLE;
        yaml_event_t event;
        size_t i;
        json_t *item;
        int r;

        r = emit_yaml_event(emitter, &event,
                            yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, style));
        if (r < 0)
                return r;
        json_array_foreach(json, i, item) {
                r = emit_value(emitter, item, depth);
                if (r < 0)
                        return r;
        }
        return emit_yaml_event(emitter, &event, yaml_sequence_end_event_initialize(&event));
}

/* Numbers, true, false, null: as in JSON. */
static int emit_other(yaml_emitter_t *emitter, json_t *json) {
        char *text = json_to_text(json, JSON_ENCODE_ANY);
        int r;

        if (!text)
                return -ENOMEM;
        r = emit_scalar(emitter, text, YAML_PLAIN_SCALAR_STYLE);
        free(text);
        return r;
}

static int emit_value(yaml_emitter_t *emitter, json_t *json, unsigned depth) {
        if (depth > DEPTH_MAX)
                return -ELOOP;
        switch (json_typeof(json)) {
        case JSON_OBJECT:
                return emit_object(emitter, json, depth + 1);
        case JSON_ARRAY:
                return emit_array(emitter, json, depth + 1);
        case JSON_STRING:
                return emit_string(emitter, json_string_value(json));
        default:
                return emit_other(emitter, json);
        }
}

static int emit_document(yaml_emitter_t *emitter, json_t *json) {
        yaml_event_t event;
        int r;

        r = emit_yaml_event(emitter, &event,
                            yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING));
        if (r < 0)
                return r;
        r = emit_yaml_event(emitter, &event,
                            yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1));
        if (r < 0)
                return r;
        r = emit_value(emitter, json, 0);
        if (r < 0)
                return r;
        r = emit_yaml_event(emitter, &event, yaml_document_end_event_initialize(&event, 1));
        if (r < 0)
                return r;
        return emit_yaml_event(emitter, &event, yaml_stream_end_event_initialize(&event));
}

static int on_yaml_output(void *userdata, unsigned char *data, size_t length) {
        return fwrite(data, 1, length, userdata) == length;
}

/* libyaml writes characters that change the writing direction unchanged, unless it escapes all
 * non-ASCII characters. */
static bool is_printable_json(json_t *json) {
        cleanup_free char *text = json_to_text(json, JSON_ENCODE_ANY);
        size_t left = text ? strlen(text) : 0;

        for (const char *p = text; left > 0;) {
                size_t n = utf8_printable_length(p, left);

                if (n == 0)
                        return false;
                p += n;
                left -= n;
        }
        return true;
}

int yaml_write(json_t *json, FILE *out) {
        yaml_emitter_t emitter;
        int r;

        if (!yaml_emitter_initialize(&emitter))
                return -ENOMEM;
        yaml_emitter_set_output(&emitter, on_yaml_output, out);
        yaml_emitter_set_unicode(&emitter, is_printable_json(json));
        yaml_emitter_set_width(&emitter, -1);
        r = emit_document(&emitter, json);
        yaml_emitter_delete(&emitter);
        return r;
}
