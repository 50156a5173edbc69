/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/quantity.h"

#include "agent/model/names.h"
#include "common/cleanup.h"

#include <ctype.h>
#include <inttypes.h>

/* Numbers are whole nano-units, the precision of Kubernetes, in 128 bits. The largest is 2^63-1
 * units, 9.2e27 nano-units; larger numbers saturate, and finer ones are rounded up (away from
 * zero). */
typedef __int128 Nano;

#define NANO_PER_UNIT  ((Nano) 1000000000)
#define NANO_PER_MILLI ((Nano) 1000000)
#define NANO_MAX       ((Nano) INT64_MAX * NANO_PER_UNIT)

enum {
        UNIT_DIGITS_MAX = 19,  /* of 2^63-1 */
        EXPONENT_MAX = 100000, /* beyond which the result is certain */
        CANONICAL_SIZE = 48,
};

/* The suffix family of a number; the canonical form keeps it. */
typedef enum QuantitySuffixFamily {
        FAMILY_DECIMAL,  /* n u m "" k M G T P E */
        FAMILY_BINARY,   /* Ki … Ei */
        FAMILY_EXPONENT, /* e3, E-2 */
} QuantitySuffixFamily;

typedef struct ParsedQuantity {
        bool is_negative;
        const char *integer; /* digits without leading zeros */
        const char *fraction;
        size_t n_integer;
        size_t n_fraction;
        QuantitySuffixFamily family;
        long exponent; /* of ten, or of two in the binary family */
} ParsedQuantity;

static const struct {
        const char *name;
        QuantitySuffixFamily family;
        int exponent;
} suffixes[] = {
        { "n", FAMILY_DECIMAL, -9 }, { "u", FAMILY_DECIMAL, -6 }, { "m", FAMILY_DECIMAL, -3 },
        { "", FAMILY_DECIMAL, 0 },   { "k", FAMILY_DECIMAL, 3 },  { "M", FAMILY_DECIMAL, 6 },
        { "G", FAMILY_DECIMAL, 9 },  { "T", FAMILY_DECIMAL, 12 }, { "P", FAMILY_DECIMAL, 15 },
        { "E", FAMILY_DECIMAL, 18 }, { "Ki", FAMILY_BINARY, 10 }, { "Mi", FAMILY_BINARY, 20 },
        { "Gi", FAMILY_BINARY, 30 }, { "Ti", FAMILY_BINARY, 40 }, { "Pi", FAMILY_BINARY, 50 },
        { "Ei", FAMILY_BINARY, 60 },
};

static const char *suffix_name(QuantitySuffixFamily family, int exponent) {
        for (size_t i = 0; i < N_ELEMENTS(suffixes); i++)
                if (suffixes[i].family == family && suffixes[i].exponent == exponent)
                        return suffixes[i].name;
        return "";
}

static bool parse_exponent(const char *text, ParsedQuantity *parsed) {
        bool is_negative = *text == '-';
        long value = 0;

        if (*text == '-' || *text == '+')
                text++;
        if (!*text)
                return false;
        for (; *text; text++) {
                if (!isdigit((unsigned char) *text))
                        return false;
                value = MIN(value * 10 + (*text - '0'), (long) EXPONENT_MAX);
        }
        parsed->family = FAMILY_EXPONENT;
        parsed->exponent = is_negative ? -value : value;
        return true;
}

static bool parse_suffix(const char *text, ParsedQuantity *parsed) {
        for (size_t i = 0; i < N_ELEMENTS(suffixes); i++)
                if (streq(text, suffixes[i].name)) {
                        parsed->family = suffixes[i].family;
                        parsed->exponent = suffixes[i].exponent;
                        return true;
                }
        return (*text == 'e' || *text == 'E') && parse_exponent(text + 1, parsed);
}

static size_t count_digits(const char *text) {
        return strspn(text, "0123456789");
}

static bool parse_parts(const char *text, ParsedQuantity *parsed) {
        size_t n_all;

        parsed->is_negative = *text == '-';
        if (*text == '-' || *text == '+')
                text++;
        n_all = count_digits(text);
        parsed->integer = text + strspn(text, "0");
        parsed->n_integer = count_digits(parsed->integer);
        text += n_all;
        if (*text == '.') {
                parsed->fraction = ++text;
                parsed->n_fraction = count_digits(text);
                text += parsed->n_fraction;
        }
        if (n_all + parsed->n_fraction == 0)
                return false;
        return parse_suffix(text, parsed);
}

/* The i-th digit after leading zeros, across both parts. */
static unsigned digit_at(const ParsedQuantity *parsed, size_t i) {
        const char *digit = i < parsed->n_integer ? parsed->integer + i
                                                  : parsed->fraction + (i - parsed->n_integer);

        return (unsigned) (*digit - '0');
}

/* Whole nano-units of digits × 10^exponent; rounds up. */
static Nano decimal_to_nano(const ParsedQuantity *parsed) {
        long n_digits = (long) (parsed->n_integer + parsed->n_fraction);
        long n_whole = (long) parsed->n_integer + parsed->exponent + 9;
        bool is_started = false;
        Nano value = 0;

        for (long i = 0; i < MAX(n_digits, n_whole); i++) {
                unsigned digit = i < n_digits ? digit_at(parsed, (size_t) i) : 0;

                is_started = is_started || digit > 0;
                if (i >= n_digits && !is_started)
                        return 0;
                if (i >= n_whole && digit > 0)
                        return MIN(value + 1, NANO_MAX);
                if (i < n_whole)
                        value = value * 10 + digit;
                if (value > NANO_MAX)
                        return NANO_MAX;
        }
        return value;
}

/* The same for digits × 2^exponent. The fraction is summed from its last digit, so that only the
 * final rounding loses precision. */
static Nano binary_to_nano(const ParsedQuantity *parsed) {
        Nano unit = NANO_PER_UNIT << parsed->exponent;
        Nano whole = 0, part = 0;
        bool is_inexact = false;

        if (parsed->n_integer > UNIT_DIGITS_MAX)
                return NANO_MAX;
        for (size_t i = 0; i < parsed->n_integer; i++)
                whole = whole * 10 + digit_at(parsed, i);
        if (whole > NANO_MAX / unit)
                return NANO_MAX;
        for (size_t i = parsed->n_fraction; i > 0; i--) {
                part += unit * digit_at(parsed, parsed->n_integer + i - 1);
                is_inexact = is_inexact || part % 10 != 0;
                part /= 10;
        }
        return MIN(whole * unit + part + is_inexact, NANO_MAX);
}

static size_t format_number(char *buffer, bool is_negative, Nano value) {
        char reversed[CANONICAL_SIZE];
        size_t n = 0, length = 0;

        do
                reversed[n++] = (char) ('0' + (int) (value % 10));
        while ((value /= 10) > 0);
        if (is_negative)
                buffer[length++] = '-';
        while (n > 0)
                buffer[length++] = reversed[--n];
        buffer[length] = '\0';
        return length;
}

/* Without a fraction, with the largest suffix of the family. A binary number that is small or not
 * whole is written in the decimal family, as Kubernetes does. */
static void format_canonical(char buffer[CANONICAL_SIZE], const ParsedQuantity *parsed, Nano nano) {
        bool is_binary = parsed->family == FAMILY_BINARY && nano % NANO_PER_UNIT == 0 &&
                         nano >= 1024 * NANO_PER_UNIT;
        int exponent = is_binary ? 0 : -9, step = is_binary ? 10 : 3;
        int exponent_max = is_binary ? 60 : 18;
        Nano base = is_binary ? 1024 : 1000, value = is_binary ? nano / NANO_PER_UNIT : nano;
        size_t length;

        if (nano == 0) {
                memcpy(buffer, "0", sizeof("0"));
                return;
        }
        while (value % base == 0 && exponent < exponent_max) {
                value /= base;
                exponent += step;
        }
        length = format_number(buffer, parsed->is_negative, value);
        if (parsed->family == FAMILY_EXPONENT && exponent != 0)
                (void) snprintf(buffer + length, CANONICAL_SIZE - length, "e%d", exponent);
        else
                (void) snprintf(buffer + length, CANONICAL_SIZE - length, "%s",
                                suffix_name(is_binary ? FAMILY_BINARY : FAMILY_DECIMAL, exponent));
}

static int64_t round_nano_up(Nano nano, Nano per, bool is_negative) {
        Nano value = MIN((nano + per - 1) / per, (Nano) INT64_MAX);

        return (int64_t) (is_negative ? -value : value);
}

int quantity_parse(const char *text, Quantity *ret, Error *reterr) {
        ParsedQuantity parsed = { 0 };
        char canonical[CANONICAL_SIZE], quoted[EXCERPT_SIZE];
        char *copy;
        Nano nano;

        if (strlen(text) > QUANTITY_LENGTH_MAX || !parse_parts(text, &parsed))
                return error_setf(reterr, EINVAL,
                                  "must be a quantity such as 500m, 2 or 1.5Gi, not '%s'",
                                  excerpt(quoted, text));

        nano = parsed.family == FAMILY_BINARY ? binary_to_nano(&parsed) : decimal_to_nano(&parsed);
        format_canonical(canonical, &parsed, nano);
        copy = strdup(canonical);
        if (!copy)
                return -ENOMEM;
        *ret = (Quantity){
                .text = copy,
                .value = round_nano_up(nano, NANO_PER_UNIT, parsed.is_negative),
                .milli = round_nano_up(nano, NANO_PER_MILLI, parsed.is_negative),
        };
        return 0;
}

void quantity_done(Quantity *quantity) {
        free(quantity->text);
        *quantity = (Quantity){ 0 };
}

static char *print_in_units(char buffer[QUANTITY_SIZE], int64_t amount, int64_t step,
                            const char *const units[6]) {
        size_t unit = 0;

        while (amount != 0 && amount % step == 0 && unit < 5) {
                amount /= step;
                unit++;
        }
        (void) snprintf(buffer, QUANTITY_SIZE, "%" PRId64 "%s", amount, units[unit]);
        return buffer;
}

char *quantity_print_bytes(char buffer[QUANTITY_SIZE], int64_t bytes) {
        static const char *const units[] = { "", "Ki", "Mi", "Gi", "Ti", "Pi" };

        return print_in_units(buffer, bytes, 1024, units);
}

char *quantity_print_count(char buffer[QUANTITY_SIZE], int64_t count) {
        static const char *const units[] = { "", "k", "M", "G", "T", "P" };

        return print_in_units(buffer, count, 1000, units);
}
