/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "agent/shim/session-status.h"
#include "common/cleanup.h"

#include <sys/wait.h>

static void expect_status(int status, const char *start_error, const char *expected) {
        cleanup_free char *text = format_session_status(status, start_error);

        EXPECT_STREQ(text, expected);
}

TEST(the_exit_status_is_reported_with_the_message_of_the_kubelet)
{
        expect_status(0, NULL, "{\"metadata\":{},\"status\":\"Success\"}");
        expect_status(W_EXITCODE(3, 0), NULL,
                      "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"command terminated "
                      "with exit code 3\",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":["
                      "{\"reason\":\"ExitCode\",\"message\":\"3\"}]}}");
        expect_status(0, "no \"x\"",
                      "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"no \\\"x\\\"\","
                      "\"reason\":\"InternalError\",\"code\":500}");
}

TEST(a_killed_command_has_the_exit_code_of_a_shell)
{
        cleanup_free char *text = format_session_status(W_EXITCODE(0, 9), NULL);

        REQUIRE(text);
        EXPECT(strstr(text, "\"message\":\"137\""));
}

TEST(only_a_valid_window_size_is_parsed)
{
        static const char *const wrong[] = { "",
                                             "{}",
                                             "[1,2]",
                                             "80",
                                             "{\"Width\":80}",
                                             "{\"Width\":0,\"Height\":24}",
                                             "{\"Width\":80,\"Height\":65536}",
                                             "{\"Width\":-1,\"Height\":24}" };
        static const char right[] = "{\"Width\":80,\"Height\":24}";
        struct winsize size;

        EXPECT(parse_terminal_size(right, strlen(right), &size));
        EXPECT_EQ(size.ws_col, 80);
        EXPECT_EQ(size.ws_row, 24);
        for (size_t i = 0; i < N_ELEMENTS(wrong); i++)
                EXPECT(!parse_terminal_size(wrong[i], strlen(wrong[i]), &size));
}
