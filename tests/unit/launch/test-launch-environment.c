/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/launch/launch-environment.h"
#include "tests/test.h"

TEST(variables_that_affect_execution_are_taken_from_the_server)
{
        static const char *const server[] = { "PATH=/usr/bin", "LANG=C", "TZ=UTC", NULL };
        static const char *const client[] = { "LD_PRELOAD=/x.so", "LD_LIBRARY_PATH=/x",
                                              "GCONV_PATH=/x",    "GLIBC_TUNABLES=x=1",
                                              "PATH=/x",          "XMAINSTAY_A=1",
                                              "TZ=Europe/Berlin", "HTTPS_PROXY=http://proxy",
                                              "no_proxy=example", "JOURNAL_STREAM=1:2",
                                              "MAINSTAY_DEBUG=1", NULL };
        static const char *const expected[] = { "PATH=/usr/bin",    "LANG=C",
                                                "TZ=Europe/Berlin", "HTTPS_PROXY=http://proxy",
                                                "no_proxy=example", "JOURNAL_STREAM=1:2",
                                                "MAINSTAY_DEBUG=1", NULL };
        char **made = launch_environment((char *const *) (uintptr_t) server,
                                         (char *const *) (uintptr_t) client);

        REQUIRE(made);
        for (size_t i = 0; i < N_ELEMENTS(expected); i++)
                EXPECT_STREQ(made[i], expected[i]);
        free(made);
}
