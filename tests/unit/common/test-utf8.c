/* SPDX-License-Identifier: Apache-2.0 */
#include "common/utf8.h"

#include "tests/test.h"

TEST(text_is_told_from_bytes)
{
        static const struct {
                const char *bytes;
                size_t length;
                bool is_text;
        } cases[] = {
                { "", 0, true },
                { "plain", 5, true },
                { "caf\xc3\xa9", 5, true },
                { "\xe2\x82\xac", 3, true },
                { "\xf0\x9f\x98\x80", 4, true },
                { "\xf4\x8f\xbf\xbf", 4, true },
                { "a\0b", 3, false },
                { "\xff", 1, false },
                { "\xc3", 1, false },
                { "\xc3(", 2, false },
                { "\xc0\xaf", 2, false },         /* '/', written too long */
                { "\xe0\x80\xaf", 3, false },     /* again */
                { "\xed\xa0\x80", 3, false },     /* a surrogate */
                { "\xf4\x90\x80\x80", 4, false }, /* beyond the last plane */
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                if (utf8_is_text(cases[i].bytes, cases[i].length) != cases[i].is_text)
                        test_fail(__FILE__, __LINE__, "case", "%zu is taken wrongly", i);
}
