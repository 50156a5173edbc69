/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay help`: prints help from the tables of commands and options. */

#include "agent/cli/cli.h"

#include "common/cleanup.h"

#include <stdio.h>
#include <stdlib.h>

enum {
        USAGE_WIDTH = 26, /* of a command; after a longer one its summary is on the next line */
};

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

static void print_command(const Command *command) {
        int n = printf("  %s %s", command->name, command->usage) - 2;

        if (n > USAGE_WIDTH) {
                printf("\n");
                n = -2;
        }
        printf("%*s %s\n", USAGE_WIDTH - n, "", command->summary);
}

void help_program(void) {
        printf("Usage: mainstay [--socket PATH] COMMAND [OPTION...]\n\n"
               "Shows and controls the pods of the node agent mainstayd, in kubectl's words.\n\n"
               "Commands:\n");
        for (size_t i = 0; i < n_commands; i++)
                print_command(&commands[i]);
        printf("\nOptions:\n");
        print_global_options();
        printf("\n'mainstay help COMMAND' shows the usage and options of a command.\n");
}

void help_command(const Command *command) {
        printf("Usage: mainstay %s %s\n\n%c%s.\n\nOptions:\n", command->name, command->usage,
               command->summary[0] - 'a' + 'A', command->summary + 1);
        for (size_t i = 0; i < command->n_options; i++)
                print_option(&command->options[i]);
        print_global_options();
}

int fail_command(const char *word) {
        cleanup_free const char **names = calloc(n_commands, sizeof(*names));
        size_t n = names ? n_commands : 0; /* if memory is exhausted, there is no suggestion */

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
