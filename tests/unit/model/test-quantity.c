/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/quantity.h"
#include "tests/test.h"

static const struct {
        const char *text;
        const char *canonical;
        int64_t value;
        int64_t milli;
} good[] = {
        /* Unchanged if the text is already canonical. */
        { "0", "0", 0, 0 },
        { "1", "1", 1, 1000 },
        { "2", "2", 2, 2000 },
        { "500m", "500m", 1, 500 },
        { "1500m", "1500m", 2, 1500 },
        { "64Mi", "64Mi", 67108864, INT64_C(67108864000) },
        { "1Ki", "1Ki", 1024, 1024000 },
        { "1Ei", "1Ei", INT64_C(1) << 60, INT64_MAX },
        { "1k", "1k", 1000, 1000000 },
        { "1E", "1E", INT64_C(1000000000000000000), INT64_MAX },
        { "7n", "7n", 1, 1 },
        { "7u", "7u", 1, 1 },

        /* The largest suffix of the same family that results in a whole number. */
        { "1000m", "1", 1, 1000 },
        { "1000", "1k", 1000, 1000000 },
        { "1200", "1200", 1200, 1200000 },
        { "1000000", "1M", 1000000, 1000000000 },
        { "1024Mi", "1Gi", INT64_C(1) << 30, (INT64_C(1) << 30) * 1000 },
        { "1025Mi", "1025Mi", INT64_C(1025) << 20, (INT64_C(1025) << 20) * 1000 },
        { "2048Ki", "2Mi", 2097152, INT64_C(2097152000) },
        { "1000k", "1M", 1000000, 1000000000 },
        { "1000Ki", "1000Ki", 1024000, 1024000000 },
        { "1000000n", "1m", 1, 1 },
        { "1000u", "1m", 1, 1 },

        /* Fractions. */
        { "0.5", "500m", 1, 500 },
        { ".5", "500m", 1, 500 },
        { "5.", "5", 5, 5000 },
        { "1.5Gi", "1536Mi", INT64_C(1536) << 20, (INT64_C(1536) << 20) * 1000 },
        { "0.5Gi", "512Mi", INT64_C(512) << 20, (INT64_C(512) << 20) * 1000 },
        { "0.5Mi", "512Ki", 524288, 524288000 },
        { "1.5", "1500m", 2, 1500 },
        { "1.5k", "1500", 1500, 1500000 },
        { "0.001", "1m", 1, 1 },
        { "1.001Ki", "1025024m", 1026, 1025024 },
        { "0.1Ki", "102400m", 103, 102400 },
        { "1.1Mi", "1153433600m", 1153434, 1153433600 },
        { "0.25Ki", "256", 256, 256000 },

        /* Exponents stay exponents. */
        { "1e3", "1e3", 1000, 1000000 },
        { "1E3", "1e3", 1000, 1000000 },
        { "1e+3", "1e3", 1000, 1000000 },
        { "1e4", "10e3", 10000, 10000000 },
        { "1000e0", "1e3", 1000, 1000000 },
        { "1e0", "1", 1, 1000 },
        { "1e-3", "1e-3", 1, 1 },
        { "5e-1", "500e-3", 1, 500 },
        { "1.5e3", "1500", 1500, 1500000 },
        { "12e6", "12e6", 12000000, INT64_C(12000000000) },

        /* Zero in every notation. */
        { "0Ki", "0", 0, 0 },
        { "0.000", "0", 0, 0 },
        { "0e99999999", "0", 0, 0 },
        { "-0", "0", 0, 0 },
        { "00001", "1", 1, 1000 },

        /* Signs. */
        { "+1", "1", 1, 1000 },
        { "-1", "-1", -1, -1000 },
        { "-500m", "-500m", -1, -500 },
        { "-1Ki", "-1Ki", -1024, -1024000 },

        /* Fractions of a billionth are rounded up; values above 2^63-1 saturate. */
        { "0.1n", "1n", 1, 1 },
        { "1.1n", "2n", 1, 1 },
        { "1e-30", "1e-9", 1, 1 },
        { "1e-99999999", "1e-9", 1, 1 },
        { "0.0000000000000000000000000001", "1n", 1, 1 },
        { "9223372036854775807", "9223372036854775807", INT64_MAX, INT64_MAX },
        { "9223372036854775808", "9223372036854775807", INT64_MAX, INT64_MAX },
        { "99999999999999999999999999999999999", "9223372036854775807", INT64_MAX, INT64_MAX },
        { "1e30", "9223372036854775807", INT64_MAX, INT64_MAX },
        { "1e99999999", "9223372036854775807", INT64_MAX, INT64_MAX },
        { "8Ei", "9223372036854775807", INT64_MAX, INT64_MAX },
        { "99999999999999999999999Ki", "9223372036854775807", INT64_MAX, INT64_MAX },
        { "9223372036854775807m", "9223372036854775807m", INT64_C(9223372036854776), INT64_MAX },
};

TEST(quantities_are_parsed_and_printed_canonically)
{
        for (size_t i = 0; i < N_ELEMENTS(good); i++) {
                Quantity quantity = { 0 };
                Error error = ERROR_NULL;
                int r = quantity_parse(good[i].text, &quantity, &error);

                printf("%s\n", good[i].text);
                EXPECT_EQ(r, 0);
                EXPECT_STREQ(quantity.text, good[i].canonical);
                EXPECT_EQ(quantity.value, good[i].value);
                EXPECT_EQ(quantity.milli, good[i].milli);
                quantity_done(&quantity);
                EXPECT(!quantity_is_set(&quantity));
                error_done(&error);
        }
}

TEST(canonical_quantity_is_unchanged)
{
        for (size_t i = 0; i < N_ELEMENTS(good); i++) {
                Quantity quantity = { 0 };

                EXPECT_EQ(quantity_parse(good[i].canonical, &quantity, NULL), 0);
                EXPECT_STREQ(quantity.text, good[i].canonical);
                quantity_done(&quantity);
        }
}

TEST(invalid_quantities_are_refused)
{
        static const char *const bad[] = {
                "",     " 1",  "1 ",  "abc", "1.1.M", "1+1.0M", "0.1mi", "0.1am", ".5i",  "1i",
                "1Kib", "1KI", "1ki", "1K",  "-",     "+",      ".",     "Ki",    "1e",   "1e+",
                "1e3k", "--1", "1,5", "0x1", "1e1.5", "1mm",    "NaN",   "inf",   "1 Gi",
        };

        for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
                Quantity quantity = { 0 };
                Error error = ERROR_NULL;

                printf("'%s'\n", bad[i]);
                EXPECT_EQ(quantity_parse(bad[i], &quantity, &error), -22);
                EXPECT(error.message && strstr(error.message, "must be a quantity"));
                EXPECT(quantity.text == NULL);
                error_done(&error);
        }
}

TEST(too_long_quantity_is_refused)
{
        char digits[QUANTITY_LENGTH_MAX + 2];
        Quantity quantity = { 0 };

        memset(digits, '9', sizeof(digits) - 1);
        digits[sizeof(digits) - 1] = '\0';
        EXPECT_EQ(quantity_parse(digits, &quantity, NULL), -22);
}

TEST(amounts_are_printed_in_the_largest_whole_unit)
{
        static const struct {
                int64_t amount;
                const char *bytes, *count;
        } cases[] = {
                { 0, "0", "0" },
                { 1023, "1023", "1023" },
                { 1024, "1Ki", "1024" },
                { 100 << 20, "100Mi", "104857600" },
                { 32000, "32000", "32k" },
                { INT64_C(3) << 40, "3Ti", "3298534883328" },
                { -2048, "-2Ki", "-2048" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                char text[QUANTITY_SIZE];

                EXPECT_STREQ(quantity_print_bytes(text, cases[i].amount), cases[i].bytes);
                EXPECT_STREQ(quantity_print_count(text, cases[i].amount), cases[i].count);
        }
}
