/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/process/safe-message.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <jansson.h>

TEST(everything_but_printable_utf8_becomes_a_question_mark)
{
        static const struct {
                const char *raw, *clean;
        } cases[] = {
                { "plain", "plain" },
                { "é€😀", "é€😀" },
                { "a\nb\tc\033[m\x7f", "a b c?[m?" },
                { "\xff\xfe", "??" },
                { "\xc3", "?" },
                { "\xe2\x82", "??" },
                { "\xc0\xaf", "??" },           /* an overlong '/' */
                { "\xed\xa0\x80", "???" },      /* a surrogate */
                { "\xf4\x90\x80\x80", "????" }, /* beyond the last plane */
                { "\xc2\x9b\x31m", "??1m" },    /* an escape of a terminal */
                /* NOLINTNEXTLINE(misc-misleading-bidirectional): it is what is tested */
                { "\xe2\x80\xae"
                  "abc",
                  "???abc" }, /* right to left */
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                cleanup_free char *text = NULL;

                (void) error_setf(&error, EINVAL, "%s", cases[i].raw);
                text = format_safe_message(&error, -EINVAL);
                EXPECT_STREQ(text, cases[i].clean);
        }
}

TEST(a_long_message_is_shortened_in_the_middle_and_stays_utf8)
{
        for (size_t shift = 0; shift < 4; shift++) {
                cleanup_error Error error = ERROR_NULL;
                cleanup_free char *text = NULL;
                char raw[8001] = "";
                json_t *json;

                memset(raw, 'x', shift);
                for (size_t i = shift; i + 4 < sizeof(raw); i += 4)
                        memcpy(raw + i, "😀", 4);
                (void) error_setf(&error, EINVAL, "start %s end", raw);
                text = format_safe_message(&error, -EINVAL);
                REQUIRE(text);
                EXPECT(strlen(text) <= SAFE_MESSAGE_LENGTH_MAX);
                EXPECT(strncmp(text, "start ", 6) == 0);
                EXPECT_STREQ(text + strlen(text) - 4, " end");
                json = json_string(text);
                EXPECT(json);
                json_decref(json);
        }
}
