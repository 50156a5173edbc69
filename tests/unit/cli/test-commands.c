/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/cli.h"
#include "common/cleanup.h"
#include "tests/pages.h"
#include "tests/test.h"

#define PAGE       "man/mainstay.1.md"
#define COMPLETION "completion/mainstay.bash"

static char *print_synopsis(void) {
        char *text;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out);
        fputs("    mainstay [--socket PATH] COMMAND [OPTION...]\n\n", out);
        for (size_t i = 0; i < n_commands; i++)
                fprintf(out, "    mainstay %s%s%s\n", commands[i].name,
                        commands[i].usage[0] ? " " : "", commands[i].usage);
        fclose(out);
        return text;
}

TEST(the_synopsis_of_the_manual_is_the_table_of_commands)
{
        cleanup_free char *expected = print_synopsis();

        page_expect_section(PAGE, "## SYNOPSIS", expected);
}

/* The option as the manual writes it: "**-n**, **--namespace** *NAMESPACE*". */
static void print_term(FILE *out, const Option *option) {
        if (option->letter)
                fprintf(out, "**-%c**, ", option->letter);
        fprintf(out, "**--%s**", option->name);
        if (option->argument)
                fprintf(out, " *%s*", option->argument);
        fputc('\n', out);
}

static char *print_terms(const Option *options, size_t n) {
        char *text;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out);
        for (size_t i = 0; i < n; i++)
                print_term(out, &options[i]);
        fclose(out);
        return text;
}

/* The lines that start with an option. */
static char *find_terms(char *section) {
        char *text, *line, *rest = section;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out);
        while ((line = strsep(&rest, "\n")))
                if (strncmp(line, "**-", 3) == 0)
                        fprintf(out, "%s\n", line);
        fclose(out);
        return text;
}

static void expect_options(const char *heading, const Option *options, size_t n) {
        cleanup_free char *section = page_read_section(PAGE, heading);
        cleanup_free char *found = find_terms(section), *expected = print_terms(options, n);

        EXPECT_STREQ(found, expected);
}

TEST(the_manual_has_the_options_of_each_command_and_no_other)
{
        expect_options("## OPTIONS", global_options, n_global_options);
        for (size_t i = 0; i < n_commands; i++) {
                cleanup_free char *heading = NULL;

                REQUIRE(asprintf(&heading, "### %s%s%s", commands[i].name,
                                 commands[i].usage[0] ? " " : "", commands[i].usage) >= 0);
                expect_options(heading, commands[i].options, commands[i].n_options);
        }
}

static void expect_in_completion(const char *completion, const char *line) {
        if (!strstr(completion, line))
                test_fail(__FILE__, __LINE__, line, "is not in packaging/" COMPLETION);
}

/* "    get) options='--namespace --all-namespaces' ;;" */
static void expect_completed_options(const char *completion, const Command *command) {
        char *line;
        size_t length;
        FILE *out = open_memstream(&line, &length);

        REQUIRE(out);
        fprintf(out, "    %s) options='", command->name);
        for (size_t i = 0; i < command->n_options; i++)
                fprintf(out, "%s--%s", i > 0 ? " " : "", command->options[i].name);
        fputs("' ;;\n", out);
        fclose(out);
        if (command->n_options > 0)
                expect_in_completion(completion, line);
        free(line);
}

/* The completion expects a value, not another word of the command line, after an option that takes
 * one. */
static void expect_known_value(const char *completion, const Option *option) {
        cleanup_free char *word = NULL;
        const char *list = strstr(completion, "local with_value='"), *end = NULL;

        if (!option->argument)
                return;
        REQUIRE(list && (end = strchr(list + strlen("local with_value='"), '\'')));
        REQUIRE(asprintf(&word, " --%s ", option->name) >= 0);
        if (!memmem(list, (size_t) (end - list), word, strlen(word)))
                test_fail(__FILE__, __LINE__, word, "is not among the options with a value");
}

TEST(the_completion_has_every_command_and_option)
{
        cleanup_free char *completion = page_read(COMPLETION);
        char *line;
        size_t length;
        FILE *out = open_memstream(&line, &length);

        REQUIRE(out);
        fputs("    local commands='", out);
        for (size_t i = 0; i < n_commands; i++) {
                fprintf(out, "%s%s", i > 0 ? " " : "", commands[i].name);
                expect_completed_options(completion, &commands[i]);
                for (size_t j = 0; j < commands[i].n_options; j++)
                        expect_known_value(completion, &commands[i].options[j]);
        }
        fputs("'\n", out);
        fclose(out);
        expect_in_completion(completion, line);
        free(line);
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
                                EXPECT(a->offset != b->offset || (a->is_list && b->is_list));
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
