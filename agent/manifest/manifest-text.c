/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/manifest-text.h"

#include "common/cleanup.h"
#include "common/utf8.h"

#include <ctype.h>
#include <stdint.h>

enum {
        ESCAPE_SIZE = sizeof("\\U0001f600"),
        TAG_DIRECTIVES_MAX = 1000,
};

void find_text_position(const char *data, size_t offset, size_t *ret_line, size_t *ret_column) {
        size_t line = 1, column = 1;

        for (size_t i = 0; i < offset; i++) {
                if (data[i] == '\n') {
                        line++;
                        column = 1;
                } else if (((uint8_t) data[i] & 0xc0) != 0x80)
                        column++;
        }
        *ret_line = line;
        *ret_column = column;
}

static int refuse_text_at(const char *file, const char *data, size_t offset, Error *reterr) {
        size_t line, column;

        find_text_position(data, offset, &line, &column);
        if (data[offset] == '\0')
                return error_setf(reterr, EINVAL, "%s:%zu:%zu: holds a NUL byte; it is not text",
                                  file, line, column);
        return error_setf(reterr, EINVAL, "%s:%zu:%zu: is not UTF-8: byte 0x%02x", file, line,
                          column, (uint8_t) data[offset]);
}

/* libyaml compares each directive with all previous ones, so their number is limited. They are
 * counted anywhere in the text, because a line can start in several ways. */
static int check_directives(const char *file, const char *data, size_t length, Error *reterr) {
        static const char directive[] = "%TAG";
        const char *p = data, *end = data + length;

        for (unsigned n = 0; n <= TAG_DIRECTIVES_MAX; n++) {
                p = memmem(p, (size_t) (end - p), directive, strlen(directive));
                if (!p)
                        return 0;
                p += strlen(directive);
        }
        return error_setf(reterr, EINVAL, "%s: holds more than %d %s directives", file,
                          TAG_DIRECTIVES_MAX, directive);
}

int check_manifest_text(const char *file, const char *data, size_t length, Error *reterr) {
        const uint8_t *bytes = (const uint8_t *) data;

        if (length >= 2 &&
            ((bytes[0] == 0xff && bytes[1] == 0xfe) || (bytes[0] == 0xfe && bytes[1] == 0xff)))
                return error_setf(reterr, EINVAL, "%s:1:1: is UTF-16; only UTF-8 is read", file);

        for (size_t i = 0; i < length;) {
                size_t n = utf8_character_length(bytes + i, length - i);

                if (n == 0 || bytes[i] == '\0')
                        return refuse_text_at(file, data, i, reterr);
                i += n;
        }
        return check_directives(file, data, length, reterr);
}

static bool is_json(const char *data, size_t length) {
        static const char bom[] = "\xef\xbb\xbf";
        size_t i = length >= 3 && memcmp(data, bom, 3) == 0 ? 3 : 0;

        while (i < length && strchr(" \t\r\n", data[i]))
                i++;
        return i < length && data[i] == '{';
}

/* The value of "\uXXXX" at 'p', or -1. */
static int utf16_unit_at(const char *p, const char *end) {
        static const char digits[] = "0123456789abcdef";
        int value = 0;

        if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
                return -1;
        for (int i = 2; i < 6; i++) {
                const char *digit = memchr(digits, tolower((unsigned char) p[i]), 16);

                if (!digit)
                        return -1;
                value = value * 16 + (int) (digit - digits);
        }
        return value;
}

/* Copies one escape, joining a surrogate pair. Advances both positions. */
static void copy_escape(const char **from, const char *end, char **to) {
        int high = utf16_unit_at(*from, end), low = high < 0 ? -1 : utf16_unit_at(*from + 6, end);
        size_t n = MIN((size_t) (end - *from), (size_t) 2);

        if (high >= 0xd800 && high < 0xdc00 && low >= 0xdc00 && low < 0xe000) {
                /* Ten characters replace twelve. */
                *to += snprintf(*to, ESCAPE_SIZE, "\\U%08x",
                                0x10000 + ((unsigned) (high - 0xd800) << 10) +
                                        (unsigned) (low - 0xdc00));
                *from += 12;
                return;
        }
        memcpy(*to, *from, n);
        *to += n;
        *from += n;
}

int convert_json_text_to_yaml(const char *data, size_t length, char **ret, size_t *ret_length) {
        const char *end = data + length;
        bool in_string = false;
        char *copy, *to;

        *ret = NULL;
        if (!is_json(data, length) ||
            (!memchr(data, '\t', length) && !memmem(data, length, "\\u", 2)))
                return 0;

        /* One more for the NUL of snprintf(). */
        copy = to = malloc(length + 1);
        if (!copy)
                return -ENOMEM;
        while (data < end) {
                if (in_string && *data == '\\') {
                        copy_escape(&data, end, &to);
                        continue;
                }
                if (*data == '"')
                        in_string = !in_string;
                *to = *data++;
                if (*to == '\t' && !in_string)
                        *to = ' ';
                to++;
        }
        *ret = copy;
        *ret_length = (size_t) (to - copy);
        return 0;
}
