/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/source/source-answer.h"

#include "common/cleanup.h"
#include "tests/test.h"

#include <errno.h>

TEST(a_response_is_either_new_or_unchanged)
{
        static const struct {
                const char *text;
                int r;
                bool is_new;
        } cases[] = {
                { "{\"result\":\"new\",\"requests\":2,\"bytes\":10}\n", 0, true },
                { "{\"result\":\"unchanged\"}", 0, false },
                { "{\"result\":\"perhaps\"}", -EBADMSG, false },
                { "{\"result\":7}", -EBADMSG, false },
                { "[]", -EBADMSG, false },
                { "", -EBADMSG, false },
                { "new", -EBADMSG, false },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_error Error error = ERROR_NULL;
                SourceAnswer answer = { 0 };

                EXPECT_EQ(
                        source_answer_parse(cases[i].text, strlen(cases[i].text), &answer, &error),
                        cases[i].r);
                EXPECT_EQ(answer.is_new, cases[i].is_new);
        }
}

TEST(damaged_response_file_is_ignored)
{
        static const char text[] = "{\"number\":7,\"summary\":\"index 7\"}", damaged[] = "{\"num";
        cleanup_with(source_in_use_done) SourceInUse in_use = { 0 }, unknown = { 0 };

        source_in_use_parse(text, strlen(text), &in_use);
        EXPECT(in_use.is_there);
        EXPECT_EQ(in_use.number, 7);
        EXPECT_STREQ(in_use.summary, "index 7");
        EXPECT_EQ(in_use.deadline_usec, 0);
        source_in_use_parse(damaged, strlen(damaged), &unknown);
        EXPECT(unknown.is_there);
        EXPECT_EQ(unknown.number, 0);
        EXPECT(!unknown.summary);
}
