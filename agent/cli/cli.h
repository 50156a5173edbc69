/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The program mainstay: its commands, their options, and what they share. */

#include "common/error.h"

#include <jansson.h>

#define DEFAULT_SOCKET "/run/mainstay/mainstay.sock"

/* Exit statuses. */
enum {
        STATUS_OK,
        STATUS_FAILED,
        STATUS_USAGE,
};

/* The command line, as far as it is given; a command reads what its table of options can set. */
typedef struct Options {
        const char *socket; /* never NULL */
        bool help;

        const char *namespace;
        bool all_namespaces;
        const char *selector;
        const char *output;
        bool watch;
        bool no_headers;

        const char *container;
        bool all_containers;
        bool follow;
        bool previous;
        bool timestamps;
        const char *tail;
        const char *since;
        const char *since_time;
        const char *limit_bytes;

        bool containers;
        bool interactive;
        bool tty;

        const char *labels;
        const char *taints;
        const char *node;

        const char *cascade;
        const char *revision;
        const char *to_revision;

        bool all;
        bool now;
        bool wait;
        const char *grace_period;

        bool bootstrap;

        char *const *words; /* what is no option; NULL-terminated */
        size_t n_words;
} Options;

typedef struct Option {
        const char *name;
        char letter;          /* 0: none */
        const char *argument; /* what it takes, in capitals; NULL: nothing, and it sets a bool */
        const char *help;
        size_t offset; /* in Options */
} Option;

typedef struct Command {
        const char *name;
        const char *usage;
        const char *summary;
        const Option *options;
        size_t n_options;
        int (*run)(const Options *options); /* gives an exit status; has said what is wrong */
} Command;

/* commands.c: the one table. */
extern const Command commands[];
extern const size_t n_commands;
extern const Option global_options[];
extern const size_t n_global_options;

const Command *find_command(const char *name);

int run_get(const Options *options);
int run_describe(const Options *options);
int run_cp(const Options *options);
int run_debug(const Options *options);
int run_delete(const Options *options);
int run_exec(const Options *options);
int run_images(const Options *options);
int run_logs(const Options *options);
int run_rollout(const Options *options);
int run_top(const Options *options);
int run_match(const Options *options);
int run_wait(const Options *options);
int run_validate(const Options *options);
int run_diff(const Options *options);
int run_version(const Options *options);
int run_help(const Options *options);

/* help.c */
void help_program(void);
void help_command(const Command *command);

/* Says that there is no such command. STATUS_USAGE. */
int fail_command(const char *word);

/* What every command says when it fails: "error: <sentence>" on standard error. STATUS_FAILED. */
int fail_with_error(int r, const Error *error);

/* The same for a command line that is wrong. STATUS_USAGE. */
int fail_usage(const char *format, ...) printf_like(1, 2);

/* Says that 'what' ("command") is not known, with the nearest of the candidates. STATUS_USAGE. */
int fail_unknown(const char *what, const char *word, const char *const *candidates, size_t n);

/* The nearest candidate, if it is near enough to be what was meant, or NULL. */
const char *find_suggestion(const char *word, const char *const *candidates, size_t n);
