/* SPDX-License-Identifier: Apache-2.0 */
#include "common/bech32.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <string.h>

enum {
        DIGIT_BITS = 5,
        DIGIT_MASK = 31,
        BYTE_BITS = 8,
        BYTE_MASK = 255,
        CHECKSUM_TOP_SHIFT = 25,
        DIGITS_MAX = (BECH32_DATA_MAX * BYTE_BITS + DIGIT_BITS - 1) / DIGIT_BITS,
        CASE_BIT = 0x20
};

static const char digits[] = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";

static uint32_t add_to_checksum(uint32_t sum, unsigned digit) {
        static const uint32_t generator[] = { 0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd,
                                              0x2a1462b3 };
        uint32_t top = sum >> CHECKSUM_TOP_SHIFT;

        sum = ((sum & ((UINT32_C(1) << CHECKSUM_TOP_SHIFT) - 1)) << DIGIT_BITS) ^ digit;
        for (size_t i = 0; i < N_ELEMENTS(generator); i++)
                if (top >> i & 1)
                        sum ^= generator[i];
        return sum;
}

static uint32_t start_checksum(const char *prefix) {
        uint32_t sum = 1;

        for (const char *p = prefix; *p; p++)
                sum = add_to_checksum(sum, (unsigned) (unsigned char) *p >> DIGIT_BITS);
        sum = add_to_checksum(sum, 0);
        for (const char *p = prefix; *p; p++)
                sum = add_to_checksum(sum, (unsigned) (unsigned char) *p & DIGIT_MASK);
        return sum;
}

static bool is_of_mixed_case(const char *text) {
        bool has_lower = false, has_upper = false;

        for (; *text; text++) {
                has_lower = has_lower || (*text >= 'a' && *text <= 'z');
                has_upper = has_upper || (*text >= 'A' && *text <= 'Z');
        }
        return has_lower && has_upper;
}

/* A digit's value, or -1. */
static int digit_value(char c) {
        const char *found;

        if (c >= 'A' && c <= 'Z')
                c = (char) (c | CASE_BIT);
        found = c ? strchr(digits, c) : NULL;
        return found ? (int) (found - digits) : -1;
}

/* Bits beyond the last byte must be zero, and there must be fewer of them than a digit has. */
static int join_digits(const uint8_t *values, size_t n, uint8_t *ret, size_t size) {
        uint32_t bits = 0;
        unsigned n_bits = 0;
        size_t length = 0;

        for (size_t i = 0; i < n; i++) {
                bits = bits << DIGIT_BITS | values[i];
                n_bits += DIGIT_BITS;
                if (n_bits < BYTE_BITS)
                        continue;
                n_bits -= BYTE_BITS;
                if (length == size)
                        return -EINVAL;
                ret[length++] = (uint8_t) (bits >> n_bits & BYTE_MASK);
                bits &= (UINT32_C(1) << n_bits) - 1;
        }
        return length == size && n_bits < DIGIT_BITS && bits == 0 ? 0 : -EINVAL;
}

int bech32_decode(const char *text, const char *prefix, uint8_t *ret, size_t size) {
        uint8_t values[DIGITS_MAX + BECH32_CHECKSUM_LENGTH];
        size_t head = strlen(prefix), n;
        uint32_t sum = start_checksum(prefix);

        assert(size <= BECH32_DATA_MAX);
        if (is_of_mixed_case(text) || strncasecmp(text, prefix, head) != 0 || text[head] != '1')
                return -EINVAL;
        text += head + 1;
        n = strlen(text);
        if (n < BECH32_CHECKSUM_LENGTH || n > sizeof(values))
                return -EINVAL;
        for (size_t i = 0; i < n; i++) {
                int value = digit_value(text[i]);

                if (value < 0)
                        return -EINVAL;
                values[i] = (uint8_t) value;
                sum = add_to_checksum(sum, (unsigned) value);
        }
        return sum == 1 ? join_digits(values, n - BECH32_CHECKSUM_LENGTH, ret, size) : -EINVAL;
}

void bech32_encode(const char *prefix, const uint8_t *data, size_t size, char *ret) {
        uint32_t sum = start_checksum(prefix), bits = 0;
        unsigned n_bits = 0;

        assert(size <= BECH32_DATA_MAX);
        for (; *prefix; prefix++)
                *ret++ = *prefix;
        *ret++ = '1';
        for (size_t i = 0; i < size || n_bits > 0;) {
                unsigned digit;

                while (n_bits < DIGIT_BITS && i < size) {
                        bits = bits << BYTE_BITS | data[i++];
                        n_bits += BYTE_BITS;
                }
                if (n_bits < DIGIT_BITS) {
                        bits <<= DIGIT_BITS - n_bits;
                        n_bits = DIGIT_BITS;
                }
                n_bits -= DIGIT_BITS;
                digit = bits >> n_bits & DIGIT_MASK;
                bits &= (UINT32_C(1) << n_bits) - 1;
                sum = add_to_checksum(sum, digit);
                *ret++ = digits[digit];
        }
        for (size_t i = 0; i < BECH32_CHECKSUM_LENGTH; i++)
                sum = add_to_checksum(sum, 0);
        sum ^= 1;
        for (size_t i = BECH32_CHECKSUM_LENGTH; i-- > 0;)
                *ret++ = digits[sum >> (i * DIGIT_BITS) & DIGIT_MASK];
        *ret = '\0';
}
