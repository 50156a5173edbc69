/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/pull/document.h"
#include "tests/test.h"

TEST(error_of_a_document_does_not_quote_it)
{
        static const struct {
                const char *text;
                const char *message;
        } cases[] = {
                { "{\"auths\": {\"r\": {\"auth\": hunter2}}}", "line 1: invalid token" },
                { "{\n\"password\": \"hunter2", "line 2: premature end of input" },
                { "{\"password\": \"hunter2\" hunter2}", "line 1: '}' expected" },
                { "{\"hunter2\": 1, \"hunter2\": 2}", "line 1: duplicate object key" },
                { "{\"password\": \"\\uhunter2\"}", "line 1: invalid escape" },
                { "{\"password\": \"\\ud800hunter2\"}", "line 1: invalid" },
                { "hunter2", "line 1: '[' or '{' expected" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                json_t *json;

                EXPECT_EQ(document_parse(cases[i].text, strlen(cases[i].text), &json, &error),
                          -EBADMSG);
                EXPECT_STREQ(error.message, cases[i].message);
        }
}
