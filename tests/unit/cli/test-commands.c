/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/test.h"

#include "agent/cli/cli.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <fcntl.h>

static char *read_source(const char *path) {
        cleanup_free char *whole = path_join(SOURCE_DIR, path);
        char *text;

        REQUIRE(read_file_at(AT_FDCWD, whole, MIB, &text, NULL) >= 0);
        return text;
}

static void expect_in(const char *text, const char *before, const char *name, const char *after) {
        char expected[128];

        (void) snprintf(expected, sizeof(expected), "%s%s%s", before, name, after);
        if (!strstr(text, expected))
                test_fail(__FILE__, __LINE__, expected, "is not there");
}

TEST(the_manual_and_the_completion_know_every_command_and_option)
{
        cleanup_free char *manual = read_source("packaging/man/mainstay.1");
        cleanup_free char *completion = read_source("packaging/completion/mainstay.bash");

        for (size_t i = 0; i < n_commands; i++) {
                expect_in(manual, "\n.Cm ", commands[i].name, "\n");
                expect_in(completion, " ", commands[i].name, "");
                for (size_t j = 0; j < commands[i].n_options; j++) {
                        expect_in(manual, "Fl -", commands[i].options[j].name, "");
                        expect_in(completion, "--", commands[i].options[j].name, "");
                }
        }
}

TEST(no_command_has_an_option_twice)
{
        for (size_t i = 0; i < n_commands; i++)
                for (size_t j = 0; j < commands[i].n_options; j++)
                        for (size_t k = 0; k < j; k++) {
                                const Option *a = &commands[i].options[j];
                                const Option *b = &commands[i].options[k];

                                EXPECT(!streq(a->name, b->name));
                                EXPECT(a->letter == 0 || a->letter != b->letter);
                                EXPECT(a->offset != b->offset);
                        }
}

TEST(every_command_is_found_and_explained)
{
        for (size_t i = 0; i < n_commands; i++) {
                EXPECT(find_command(commands[i].name) == &commands[i]);
                EXPECT(commands[i].summary[0] >= 'a' && commands[i].summary[0] <= 'z');
                EXPECT(commands[i].run);
        }
        EXPECT(!find_command("ge"));
}
