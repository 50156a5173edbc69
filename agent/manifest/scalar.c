/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/scalar.h"

#include "agent/model/names.h"
#include "common/cleanup.h"
#include "common/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>

enum {
        NUMBER_LENGTH_MAX = 400 /* maximum number of digits; a longer text is a string */
};

#define YAML_TAG_PREFIX "tag:yaml.org,2002:"

/* An integer as it was written. */
typedef struct Integer {
        bool is_negative;
        bool is_too_large; /* it does not fit into 64 bits */
        uint64_t magnitude;
} Integer;

static const char *const words_true[] = {
        "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", NULL,
};
static const char *const words_false[] = {
        "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF", NULL,
};
static const char *const words_null[] = {
        "", "~", "null", "Null", "NULL", NULL,
};
static const char *const words_float[] = {
        ".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",  ".INF", "+.inf",
        "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", NULL,
};

/* Skips the prefix of the base and returns the base: 0x 0o 0b, and 0 for octal. */
static unsigned skip_base(const char **text) {
        const char *p = *text;
        char letter;

        if (p[0] != '0' || p[1] == '\0')
                return 10;
        letter = (char) tolower((unsigned char) p[1]);
        *text += letter == 'x' || letter == 'o' || letter == 'b' ? 2 : 1;
        return letter == 'x' ? 16 : letter == 'b' ? 2 : 8;
}

static unsigned scalar_digit_value(char c) {
        if (c >= '0' && c <= '9')
                return (unsigned) (c - '0');
        c = (char) tolower((unsigned char) c);
        return c >= 'a' && c <= 'f' ? (unsigned) (c - 'a') + 10 : 255;
}

/* Like strconv.ParseInt(…, 0, 64), then ParseUint(). Underscores have been removed. */
static bool parse_integer(const char *text, Integer *ret) {
        Integer integer = { .is_negative = *text == '-' };
        bool has_sign = *text == '-' || *text == '+';
        unsigned base;

        text += has_sign;
        base = skip_base(&text);
        if (!*text)
                return false;
        for (; *text; text++) {
                unsigned digit = scalar_digit_value(*text);

                if (digit >= base)
                        return false;
                if (__builtin_mul_overflow(integer.magnitude, base, &integer.magnitude) ||
                    __builtin_add_overflow(integer.magnitude, digit, &integer.magnitude))
                        integer.is_too_large = true;
        }
        if (has_sign && integer.magnitude > (uint64_t) INT64_MAX + integer.is_negative)
                integer.is_too_large = true;
        *ret = integer;
        return true;
}

static const char *skip_digits(const char *text) {
        return text + strspn(text, "0123456789");
}

/* [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? */
static bool is_float(const char *text) {
        const char *start, *end;

        text += *text == '-' || *text == '+';
        start = text;
        end = skip_digits(text);
        if (*end == '.')
                end = skip_digits(end + 1);
        if (end == start || (*start == '.' && end == start + 1))
                return false;
        if (*end == 'e' || *end == 'E') {
                end++;
                end += *end == '-' || *end == '+';
                if (!isdigit((unsigned char) *end))
                        return false;
                end = skip_digits(end);
        }
        return *end == '\0';
}

/* Copies a number without the underscores that may separate digits. False if it is too long. */
static bool strip_underscores(const char *text, char buffer[NUMBER_LENGTH_MAX + 1]) {
        size_t n = 0;

        for (; *text; text++) {
                if (*text == '_')
                        continue;
                if (n == NUMBER_LENGTH_MAX)
                        return false;
                buffer[n++] = *text;
        }
        buffer[n] = '\0';
        return true;
}

static YamlNodeKind resolve_number(const char *text) {
        char plain[NUMBER_LENGTH_MAX + 1];
        Integer integer;

        if (*text == '.')
                return is_float(text) ? YAML_NODE_FLOAT : YAML_NODE_STRING;
        if (!strip_underscores(text, plain))
                return YAML_NODE_STRING;
        if (parse_integer(plain, &integer))
                return integer.is_too_large ? YAML_NODE_FLOAT : YAML_NODE_INT;
        return is_float(plain) ? YAML_NODE_FLOAT : YAML_NODE_STRING;
}

YamlNodeKind scalar_resolve(const char *text) {
        if (text_is_one_of(text, words_null))
                return YAML_NODE_NULL;
        if (text_is_one_of(text, words_true) || text_is_one_of(text, words_false))
                return YAML_NODE_BOOL;
        if (text_is_one_of(text, words_float))
                return YAML_NODE_FLOAT;
        if (isdigit((unsigned char) *text) || strchr("+-.", *text))
                return resolve_number(text);
        return YAML_NODE_STRING;
}

int scalar_resolve_tagged(const char *text, const char *tag, YamlNodeKind *ret) {
        static const struct {
                const char *tag;
                YamlNodeKind kind;
        } tags[] = {
                { "null", YAML_NODE_NULL },
                { "bool", YAML_NODE_BOOL },
                { "int", YAML_NODE_INT },
                { "float", YAML_NODE_FLOAT },
        };
        YamlNodeKind kind = scalar_resolve(text);

        /* The tag "!" alone always denotes a string. */
        if (streq(tag, "!") || streq(tag, YAML_TAG_PREFIX "str")) {
                *ret = YAML_NODE_STRING;
                return 0;
        }
        if (strncmp(tag, YAML_TAG_PREFIX, strlen(YAML_TAG_PREFIX)) != 0)
                return -EINVAL;
        tag += strlen(YAML_TAG_PREFIX);
        for (size_t i = 0; i < N_ELEMENTS(tags); i++) {
                bool is_whole_float = tags[i].kind == YAML_NODE_FLOAT && kind == YAML_NODE_INT;

                if (streq(tag, tags[i].tag) && (kind == tags[i].kind || is_whole_float)) {
                        *ret = tags[i].kind;
                        return 0;
                }
        }
        return -EINVAL;
}

bool yaml_node_bool(const YamlNode *node) {
        return text_is_one_of(node->text, words_true);
}

static bool parse_node_float(const YamlNode *node, double *ret) {
        char plain[NUMBER_LENGTH_MAX + 1];

        if (text_is_one_of(node->text, words_float) || !strip_underscores(node->text, plain))
                return false;
        *ret = strtod(plain, NULL);
        return isfinite(*ret);
}

static bool parse_node_integer(const YamlNode *node, Integer *ret) {
        char plain[NUMBER_LENGTH_MAX + 1];

        return strip_underscores(node->text, plain) && parse_integer(plain, ret);
}

bool yaml_node_int(const YamlNode *node, int64_t *ret) {
        Integer integer;
        double number;

        if (node->kind == YAML_NODE_INT && parse_node_integer(node, &integer) &&
            integer.magnitude <= (uint64_t) INT64_MAX) {
                *ret = integer.is_negative ? -(int64_t) integer.magnitude
                                           : (int64_t) integer.magnitude;
                return true;
        }
        if (node->kind == YAML_NODE_FLOAT && parse_node_float(node, &number) && number > -0x1p53 &&
            number < 0x1p53 && (double) (int64_t) number == number) {
                *ret = (int64_t) number;
                return true;
        }
        return false;
}

/* The format of a number: the maximum number of digits, and the powers of ten that are written
 * without an exponent. */
typedef struct FloatForm {
        bool is_single; /* precision of 24 bits */
        int digits_max;
        int exponent_min, exponent_end;
} FloatForm;

static const FloatForm json_form = { false, 17, -6, 21 };
static const FloatForm key_form = { true, 9, -4, 6 }; /* by Go's 'g' */

static bool is_float_round_trip(const FloatForm *form, const char *text, double number) {
        return form->is_single ? (double) strtof(text, NULL) == number
                               : strtod(text, NULL) == number;
}

/* The fewest digits that read back as the same number. */
static void format_float(const FloatForm *form, char buffer[NUMBER_SIZE], double number) {
        int digits = 0, exponent;

        if (form->is_single)
                number = (double) (float) number;
        do
                (void) snprintf(buffer, NUMBER_SIZE, "%.*e", digits, number);
        while (!is_float_round_trip(form, buffer, number) && ++digits < form->digits_max);
        exponent = (int) strtol(strchr(buffer, 'e') + 1, NULL, 10);
        if (exponent >= form->exponent_min && exponent < form->exponent_end)
                (void) snprintf(buffer, NUMBER_SIZE, "%.*f", MAX(digits - exponent, 0), number);
}

static bool format_node_number(const YamlNode *node, const FloatForm *form,
                               char buffer[NUMBER_SIZE]) {
        Integer integer;
        double number;

        if (node->kind == YAML_NODE_INT && parse_node_integer(node, &integer)) {
                (void) snprintf(buffer, NUMBER_SIZE, "%s%" PRIu64, integer.is_negative ? "-" : "",
                                integer.magnitude);
                return true;
        }
        if (node->kind != YAML_NODE_FLOAT || !parse_node_float(node, &number))
                return false;
        format_float(form, buffer, number);
        return true;
}

bool yaml_node_number(const YamlNode *node, char buffer[NUMBER_SIZE]) {
        return format_node_number(node, &json_form, buffer);
}

bool yaml_node_number_as_key(const YamlNode *node, char buffer[NUMBER_SIZE]) {
        double number;

        if (node->kind == YAML_NODE_FLOAT && parse_node_float(node, &number) &&
            !isfinite((float) number))
                return false;
        return format_node_number(node, &key_form, buffer);
}
