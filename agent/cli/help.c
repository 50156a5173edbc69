/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/cli.h"

#include <stdio.h>

/* help: the tables of commands.c, printed. */

static void print_option(const Option *option) {
        char text[64];

        (void) snprintf(text, sizeof(text), "--%s%s%s", option->name, option->argument ? " " : "",
                        strna(option->argument));
        if (option->letter)
                printf("  -%c, %-22s %s\n", option->letter, text, option->help);
        else
                printf("      %-22s %s\n", text, option->help);
}

static void print_global_options(void) {
        for (size_t i = 0; i < n_global_options; i++)
                print_option(&global_options[i]);
}

void help_program(void) {
        printf("Usage: mainstay [--socket PATH] COMMAND\n\n"
               "Shows what the node agent mainstayd runs, and acts on it.\n\nCommands:\n");
        for (size_t i = 0; i < n_commands; i++) {
                char text[64];

                (void) snprintf(text, sizeof(text), "%s %s", commands[i].name, commands[i].usage);
                printf("  %-26s %s\n", text, commands[i].summary);
        }
        printf("\nOptions:\n");
        print_global_options();
        printf("\n'mainstay help COMMAND' explains a command.\n");
}

void help_command(const Command *command) {
        printf("Usage: mainstay %s %s\n\n%c%s.\n\nOptions:\n", command->name, command->usage,
               command->summary[0] - 'a' + 'A', command->summary + 1);
        for (size_t i = 0; i < command->n_options; i++)
                print_option(&command->options[i]);
        print_global_options();
}

int fail_command(const char *word) {
        const char *names[16];
        size_t n = MIN(n_commands, N_ELEMENTS(names));

        for (size_t i = 0; i < n; i++)
                names[i] = commands[i].name;
        return fail_unknown("command", word, names, n);
}

int run_help(const Options *options) {
        const Command *command;

        if (options->n_words == 0) {
                help_program();
                return STATUS_OK;
        }
        command = find_command(options->words[0]);
        if (!command)
                return fail_command(options->words[0]);
        help_command(command);
        return STATUS_OK;
}
