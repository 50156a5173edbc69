/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/env-file.h"

#include "common/cleanup.h"
#include "tests/test.h"

TEST(env_file_is_read_by_shell_rules)
{
        static const struct {
                const char *text;
                const char *value; /* the value of A */
        } cases[] = {
                { "A='b'", "b" },
                { "A='b'\n", "b" },
                { "A=''", "" },
                { "", NULL },
                { "\n \n# A='no'\n  A = 'b' \t\n", "b" },
                { "B='1'\r\nA='2'\r\n", "2" },
                { "A='one\ntwo # \\n \"$B\" '\nB='3'\n", "one\ntwo # \\n \"$B\" " },
                { "B='\nA=\n'\nAA='1'\n", NULL },
                { "A='1'\nA='2'\n", "1" },
                { "A='1'\nnonsense\n", "1" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *value = NULL;

                EXPECT_EQ(env_file_find(cases[i].text, "A", &value, NULL), 0);
                EXPECT_STREQ(value, cases[i].value);
        }
}

TEST(shell_syntax_beyond_assignments_is_refused_with_its_line)
{
        static const char *const texts[] = {
                "A=b",  "A=\"b\"",      "A='b''c'", "A='b'$C",   "A",
                "='b'", "export A='b'", "A='b",     "A='b' # c", "A='b\n\n\nC=d\n",
        };

        for (size_t i = 0; i < N_ELEMENTS(texts); i++) {
                cleanup_error Error error = ERROR_NULL;
                cleanup_free char *value = NULL, *text = NULL;

                REQUIRE(asprintf(&text, "# first\nB='\n'\n%s", texts[i]) > 0);
                EXPECT_EQ(env_file_find(text, "A", &value, &error), -EBADMSG);
                EXPECT_STREQ(error.message, "invalid environment variable format at line 4: must "
                                            "be NAME='value'");
                EXPECT(value == NULL);
        }
}
