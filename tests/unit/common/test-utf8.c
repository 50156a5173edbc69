/* SPDX-License-Identifier: Apache-2.0 */
#include "common/utf8.h"

#include "tests/test.h"

TEST(utf8_is_validated)
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
                { "\xc0\xaf", 2, false },         /* '/', overlong */
                { "\xe0\x80\xaf", 3, false },     /* overlong as well */
                { "\xed\xa0\x80", 3, false },     /* a surrogate */
                { "\xf4\x90\x80\x80", 4, false }, /* beyond the last plane */
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                if (utf8_is_text(cases[i].bytes, cases[i].length) != cases[i].is_text)
                        test_fail(__FILE__, __LINE__, "case", "case %zu is classified wrongly", i);
}

TEST(untrusted_text_is_made_printable)
{
        static const struct {
                const char *text, *shown;
        } cases[] = {
                { "", "" },
                { "caf\xc3\xa9 \xc2\xa0", "caf\xc3\xa9 \xc2\xa0" },
                { "a\033[2Jb\x7f", "a?[2Jb?" },
                { "a\n<3>b\r\tc", "a <3>b  c" },
                { "a\xc2\x9b"
                  "2J",
                  "a??2J" },
                { "\xc2", "?" },
                { "\x9b"
                  "2J",
                  "?2J" },
                { "a\xe2\x80\xae\xe2\x81\xa6\xd8\x9c\xe2\x80\x8f\xe2\x81\xa9\xe2\x80\xac\xe2\x80"
                  "\xa8z",
                  "a????????????????????z" }, /* changes of text direction, a line separator */
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                char text[32];

                (void) snprintf(text, sizeof(text), "%s", cases[i].text);
                utf8_sanitize(text);
                EXPECT_STREQ(text, cases[i].shown);
        }
}
