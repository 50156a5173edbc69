/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base64.h"

#include "common/cleanup.h"

#include <stdint.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int base64_digit_value(char c) {
        const char *found = c ? strchr(digits, c) : NULL;

        return found ? (int) (found - digits) : -EINVAL;
}

/* The padding of the last group, followed by the end. */
static bool is_right_end(const char *text, unsigned n_digits, bool may_be_unpadded) {
        unsigned missing = n_digits % 4 == 0 ? 0 : 4 - n_digits % 4;

        if (missing == 3)
                return false;
        if (may_be_unpadded && !strchr(text, '='))
                missing = 0;
        for (; *text; text++)
                if (*text == '=' && missing > 0)
                        missing--;
                else if (*text != '\n' && *text != '\r')
                        return false;
        return missing == 0;
}

static int decode_digits(const char *text, bool may_be_unpadded, char **ret_data,
                         size_t *ret_length) {
        cleanup_free char *data = malloc(strlen(text) / 4 * 3 + 4);
        unsigned n_digits = 0;
        uint32_t bits = 0;
        size_t length = 0;

        if (!data)
                return -ENOMEM;
        for (; *text && *text != '='; text++) {
                int value;

                if (*text == '\n' || *text == '\r')
                        continue;
                value = base64_digit_value(*text);
                if (value < 0)
                        return value;
                bits = bits << 6 | (uint32_t) value;
                /* Each digit has six bits; in a group of four, each digit from the second on
                 * completes a byte. */
                if (n_digits++ % 4 != 0)
                        data[length++] = (char) (bits >> (6 - 2 * ((n_digits - 1) % 4)));
        }
        if (!is_right_end(text, n_digits, may_be_unpadded))
                return -EINVAL;
        data[length] = '\0';
        *ret_data = TAKE_PTR(data);
        *ret_length = length;
        return 0;
}

int base64_decode(const char *text, char **ret_data, size_t *ret_length) {
        return decode_digits(text, false, ret_data, ret_length);
}

int base64_decode_unpadded(const char *text, char **ret_data, size_t *ret_length) {
        return decode_digits(text, true, ret_data, ret_length);
}

void base64_encode(const void *data, size_t length, char *ret) {
        const uint8_t *bytes = data;

        for (size_t i = 0; i < length; i += 3) {
                uint32_t bits = (uint32_t) bytes[i] << 16;

                bits |= i + 1 < length ? (uint32_t) bytes[i + 1] << 8 : 0;
                bits |= i + 2 < length ? bytes[i + 2] : 0;
                *ret++ = digits[bits >> 18];
                *ret++ = digits[bits >> 12 & 63];
                *ret++ = (char) (i + 1 < length ? digits[bits >> 6 & 63] : '=');
                *ret++ = (char) (i + 2 < length ? digits[bits & 63] : '=');
        }
        *ret = '\0';
}
