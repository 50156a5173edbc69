/* SPDX-License-Identifier: Apache-2.0 */
/* The program mainstay: parses the command line and runs the command. */

#include "agent/cli/cli.h"

#include "common/cleanup.h"

#include <assert.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum {
        OPTIONS_MAX = 24,
        FIRST_LONG = 256 /* getopt's value of an option: this plus its row */
};

/* The options of a command, the global ones last. */
typedef struct OptionSet {
        const Option *rows[OPTIONS_MAX];
        size_t n;
        struct option longs[OPTIONS_MAX + 1];
        char shorts[2 * OPTIONS_MAX + 4];
} OptionSet;

static void add_cli_option(OptionSet *set, const Option *option) {
        char letter[3] = { option->letter, option->argument ? ':' : '\0', '\0' };

        assert(set->n < OPTIONS_MAX);
        set->longs[set->n] = (struct option){
                .name = option->name,
                .has_arg = option->argument ? required_argument : no_argument,
                .val = FIRST_LONG + (int) set->n,
        };
        if (option->letter)
                strncat(set->shorts, letter, sizeof(set->shorts) - strlen(set->shorts) - 1);
        set->rows[set->n++] = option;
}

/* Before the command, options end at the first word. The leading colon makes getopt_long()
 * distinguish a missing argument from an unknown option. */
static OptionSet make_option_set(const Command *command) {
        OptionSet set = { .shorts = "+:" };

        if (command)
                memmove(set.shorts, ":", sizeof(":"));
        for (size_t i = 0; command && i < command->n_options; i++)
                add_cli_option(&set, &command->options[i]);
        for (size_t i = 0; i < n_global_options; i++)
                add_cli_option(&set, &global_options[i]);
        return set;
}

static const Option *find_cli_option(const OptionSet *set, int value) {
        for (size_t i = 0; i < set->n; i++)
                if (value == FIRST_LONG + (int) i || (value != 0 && value == set->rows[i]->letter))
                        return set->rows[i];
        return NULL;
}

static int fail_unknown_option(const OptionSet *set, const char *word) {
        cleanup_free char *name = strndup(word, strcspn(word, "="));
        const char *names[OPTIONS_MAX], *hint;

        for (size_t i = 0; i < set->n; i++)
                names[i] = set->rows[i]->name;
        hint = name && strncmp(name, "--", 2) == 0 ? find_suggestion(name + 2, names, set->n)
                                                   : NULL;
        if (hint)
                return fail_usage("unknown option '%s'; did you mean '--%s'?", name, hint);
        return fail_usage("unknown option '%s'; see 'mainstay help'", name ? name : word);
}

static int fail_option(const OptionSet *set, int value, char **argv) {
        const Option *option = find_cli_option(set, optopt);

        if (option && value == ':')
                return fail_usage("option '--%s' needs a value: %s", option->name,
                                  option->argument);
        if (option)
                return fail_usage("option '--%s' takes no value", option->name);
        if (optopt != 0)
                return fail_usage("unknown option '-%c'; see 'mainstay help'", optopt);
        return fail_unknown_option(set, argv[optind - 1]);
}

static int add_option_value(const Option *option, OptionValues *list, const char *value) {
        if (list->n == OPTION_VALUES_MAX)
                return fail_usage("option '--%s' is given more than %d times", option->name,
                                  OPTION_VALUES_MAX);
        list->values[list->n++] = value;
        return STATUS_OK;
}

static int set_option(Options *options, const Option *option, const char *value) {
        void *member = (char *) options + option->offset;

        if (option->is_list)
                return add_option_value(option, member, value);
        if (option->argument)
                memcpy(member, &value, sizeof(value));
        else
                *(bool *) member = true;
        return STATUS_OK;
}

/* Parses options up to the end (or, before the command, to the first word). 0 or an exit status. */
static int read_options(const Command *command, int argc, char **argv, Options *options) {
        OptionSet set = make_option_set(command);

        opterr = 0;
        optind = 0; /* glibc: start again */
        for (;;) {
                int value = getopt_long(argc, argv, set.shorts, set.longs, NULL), status;

                if (value < 0)
                        break;
                if (value == '?' || value == ':')
                        return fail_option(&set, value, argv);
                status = set_option(options, find_cli_option(&set, value), optarg);
                if (status != STATUS_OK)
                        return status;
        }
        options->words = argv + optind;
        options->n_words = (size_t) (argc - optind);
        return STATUS_OK;
}

static int run_cli(int argc, char **argv) {
        const char *socket = getenv("MAINSTAY_SOCKET");
        Options options = { .socket = socket && socket[0] ? socket : DEFAULT_SOCKET };
        const Command *command;
        int status;

        status = read_options(NULL, argc, argv, &options);
        if (status != STATUS_OK)
                return status;
        if (options.help) {
                help_program();
                return STATUS_OK;
        }
        if (options.n_words == 0)
                return fail_usage(
                        "a command is required, such as 'mainstay get pods'; see 'mainstay "
                        "help'");
        command = find_command(options.words[0]);
        if (!command)
                return fail_command(options.words[0]);
        status = read_options(command, argc - optind, argv + optind, &options);
        if (status != STATUS_OK)
                return status;
        if (options.help) {
                help_command(command);
                return STATUS_OK;
        }
        return command->run(&options);
}

static bool is_output_pipe_closed(void) {
        struct pollfd fd = { .fd = STDOUT_FILENO };

        return poll(&fd, 1, 0) > 0 && fd.revents & POLLERR;
}

int main(int argc, char **argv) {
        int status = run_cli(argc, argv);

        /* A full disk behind a redirection is a failure; a closed pipe is not. An earlier write may
         * have failed, and left nothing to flush. */
        errno = 0;
        if ((fflush(stdout) != 0 || ferror(stdout)) && status == STATUS_OK &&
            !is_output_pipe_closed()) {
                fprintf(stderr, "error: cannot write: %s\n",
                        errno > 0 ? strerror(errno) : "the output is incomplete");
                status = STATUS_FAILED;
        }
        return status;
}
