/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/signals.h"

#include "tests/test.h"

#include <signal.h>

TEST(signals_are_parsed_by_all_their_names)
{
        const struct {
                const char *name;
                int number;
        } cases[] = {
                { "SIGTERM", SIGTERM },
                { "TERM", SIGTERM },
                { "sigquit", SIGQUIT },
                { "15", SIGTERM },
                { "SIGRTMIN", SIGRTMIN },
                { "SIGRTMIN+3", SIGRTMIN + 3 },
                { "RTMAX-1", SIGRTMAX - 1 },
                { "SIGIOT", SIGABRT },
                { "SIGCLD", SIGCHLD },
                { "SIGPOLL", SIGIO },
                { "SIGNOTHING", 0 },
                { "", 0 },
                { "0", 0 },
                { "-1", 0 },
                { "SIGRTMIN+99", 0 },
                { "SIGRTMIN-1", 0 },
                { "SIGRTMIN+", 0 },
                { "9999", 0 },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                printf("%s\n", cases[i].name);
                EXPECT_EQ(signal_from_name(cases[i].name), cases[i].number);
        }
}

TEST(signals_are_printed_as_pods_name_them)
{
        static const char *const names[] = { "SIGTERM",    "SIGUSR1",  "SIGRTMIN",   "SIGRTMIN+3",
                                             "SIGRTMAX-2", "SIGRTMAX", "SIGRTMIN+15" };

        for (size_t i = 0; i < N_ELEMENTS(names); i++) {
                char name[SIGNAL_NAME_SIZE];

                EXPECT_STREQ(signal_name(signal_from_name(names[i]), name), names[i]);
                EXPECT_EQ(check_stop_signal(name, NULL), 0);
        }
}

TEST(stop_signal_must_be_one_that_kubernetes_accepts)
{
        static const char *const good[] = { "SIGTERM",  "SIGKILL",     "SIGRTMIN", "SIGRTMIN+15",
                                            "SIGRTMAX", "SIGRTMAX-14", "SIGPOLL" };
        static const char *const bad[] = { "TERM",        "15",         "sigterm", "SIGRTMIN+16",
                                           "SIGRTMAX-15", "SIGRTMAX+1", "SIG",     "SIGFOO" };

        for (size_t i = 0; i < N_ELEMENTS(good); i++)
                EXPECT_EQ(check_stop_signal(good[i], NULL), 0);
        for (size_t i = 0; i < N_ELEMENTS(bad); i++)
                EXPECT(check_stop_signal(bad[i], NULL) < 0);
}
