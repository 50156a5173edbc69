/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/quantity.h"

#include "agent/model/names.h"
#include "common/cleanup.h"

#include <ctype.h>
#include <inttypes.h>

#define NANO_PER_UNIT  1000000000U
#define NANO_PER_MILLI 1000000U
#define NANO_MAX       ((Nano){ .units = INT64_MAX })

/* A number with nine decimal places, which is the precision of Kubernetes, and for which a 32-bit
 * machine has no type. The maximum is 2^63-1; larger numbers saturate, and more precise ones are
 * rounded up (away from zero). */
typedef struct Nano {
        uint64_t units;
        uint32_t nano; /* below NANO_PER_UNIT */
} Nano;

enum {
        UNIT_DIGITS_MAX = 19,  /* of 2^63-1 */
        EXPONENT_MAX = 100000, /* beyond which the result is certain */
        DIGITS_SIZE = 32,      /* 19 digits and nine decimal places */
        CANONICAL_SIZE = 64,   /* plus a sign and an exponent */
};

/* A number's suffix family, which the canonical form keeps. */
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
        long exponent; /* a power of ten, or of two in the binary family */
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

static Nano round_and_saturate(Nano value, bool is_inexact) {
        value.nano += is_inexact;
        if (value.nano == NANO_PER_UNIT)
                value = (Nano){ .units = value.units + 1 };
        return value.units >= INT64_MAX ? NANO_MAX : value;
}

/* Digits × 10^exponent. */
static Nano decimal_to_nano(const ParsedQuantity *parsed) {
        static const uint32_t tens[] = { 100000000, 10000000, 1000000, 100000, 10000,
                                         1000,      100,      10,      1 };
        long n_digits = (long) (parsed->n_integer + parsed->n_fraction);
        long n_units = (long) parsed->n_integer + parsed->exponent;
        bool is_started = false;
        Nano value = { 0 };

        for (long i = 0; i < MAX(n_digits, n_units); i++) {
                unsigned digit = i < n_digits ? digit_at(parsed, (size_t) i) : 0;

                is_started = is_started || digit > 0;
                if (i >= n_digits && !is_started)
                        break;
                if (i < n_units) {
                        if (value.units > ((uint64_t) INT64_MAX - digit) / 10)
                                return NANO_MAX;
                        value.units = value.units * 10 + digit;
                } else if (i - n_units < (long) N_ELEMENTS(tens))
                        value.nano += digit * tens[i - n_units];
                else if (digit > 0)
                        return round_and_saturate(value, true);
        }
        return round_and_saturate(value, false);
}

/* The same for digits × 2^exponent. The fraction is summed from its last digit, so that only the
 * final rounding loses precision. */
static Nano binary_to_nano(const ParsedQuantity *parsed) {
        uint64_t unit = UINT64_C(1) << parsed->exponent, whole = 0;
        bool is_inexact = false;
        Nano part = { 0 };

        if (parsed->n_integer > UNIT_DIGITS_MAX)
                return NANO_MAX;
        for (size_t i = 0; i < parsed->n_integer; i++)
                whole = whole * 10 + digit_at(parsed, i);
        if (whole > INT64_MAX / unit)
                return NANO_MAX;
        for (size_t i = parsed->n_fraction; i > 0; i--) {
                uint64_t sum = part.units + unit * digit_at(parsed, parsed->n_integer + i - 1);
                uint64_t rest = sum % 10 * NANO_PER_UNIT + part.nano;

                is_inexact = is_inexact || rest % 10 != 0;
                part = (Nano){ sum / 10, (uint32_t) (rest / 10) };
        }
        part.units += whole * unit;
        return round_and_saturate(part, is_inexact);
}

/* In units of the largest power of 'base' that divides the number; returns its exponent. */
static int format_digits(char digits[DIGITS_SIZE], Nano value, uint64_t base, int step,
                         int exponent_max) {
        int exponent = 0, decimals = 9;

        if (value.nano == 0) {
                for (; value.units % base == 0 && exponent < exponent_max; exponent += step)
                        value.units /= base;
                (void) snprintf(digits, DIGITS_SIZE, "%" PRIu64, value.units);
                return exponent;
        }
        for (; value.nano % 1000 == 0; decimals -= 3)
                value.nano /= 1000;
        if (value.units > 0)
                (void) snprintf(digits, DIGITS_SIZE, "%" PRIu64 "%0*" PRIu32, value.units, decimals,
                                value.nano);
        else
                (void) snprintf(digits, DIGITS_SIZE, "%" PRIu32, value.nano);
        return -decimals;
}

/* Prints the number without a fraction, with the largest possible suffix of the family. As in
 * Kubernetes, a binary number that is small or not whole is printed in the decimal family. */
static void format_canonical(char buffer[CANONICAL_SIZE], const ParsedQuantity *parsed,
                             Nano value) {
        bool is_binary = parsed->family == FAMILY_BINARY && value.nano == 0 && value.units >= 1024;
        const char *sign = parsed->is_negative ? "-" : "";
        char digits[DIGITS_SIZE];
        int exponent;

        if (value.units == 0 && value.nano == 0) {
                memcpy(buffer, "0", sizeof("0"));
                return;
        }
        exponent = is_binary ? format_digits(digits, value, 1024, 10, 60)
                             : format_digits(digits, value, 1000, 3, 18);
        if (parsed->family == FAMILY_EXPONENT && exponent != 0)
                (void) snprintf(buffer, CANONICAL_SIZE, "%s%se%d", sign, digits, exponent);
        else
                (void) snprintf(buffer, CANONICAL_SIZE, "%s%s%s", sign, digits,
                                suffix_name(is_binary ? FAMILY_BINARY : FAMILY_DECIMAL, exponent));
}

static int64_t with_sign(uint64_t value, bool is_negative) {
        int64_t saturated = (int64_t) MIN(value, (uint64_t) INT64_MAX);

        return is_negative ? -saturated : saturated;
}

static uint64_t round_up_to_milli(Nano value) {
        if (value.units > INT64_MAX / 1000)
                return INT64_MAX;
        return value.units * 1000 + (value.nano + NANO_PER_MILLI - 1) / NANO_PER_MILLI;
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
                .value = with_sign(nano.units + (nano.nano > 0), parsed.is_negative),
                .milli = with_sign(round_up_to_milli(nano), parsed.is_negative),
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
