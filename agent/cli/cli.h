/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The program mainstay: its tables of commands and options, and functions that all commands share.
 */

#include "common/error.h"

#include <jansson.h>

#define DEFAULT_SOCKET "/run/mainstay/mainstay.sock"

/* Exit statuses. */
enum {
        STATUS_OK,
        STATUS_FAILED,
        STATUS_USAGE,
};

/* The values of an option that may be given several times; borrowed. */
enum {
        OPTION_VALUES_MAX = 64
};

typedef struct OptionValues {
        const char *values[OPTION_VALUES_MAX];
        size_t n;
} OptionValues;

/* The parsed command line; a command reads the members that its options set. */
typedef struct Options {
        const char *socket; /* never NULL */
        bool help;

        const char *namespace;
        bool all_namespaces;
        const char *selector;
        const char *output;
        const char *server;
        bool watch;
        bool no_headers;
        bool show_labels;

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
        const char *image;
        const char *target;
        const char *profile;

        const char *labels;
        const char *taints;
        const char *node;

        const char *cascade;
        const char *revision;
        const char *to_revision;

        const char *name; /* for `images import` */
        OptionValues config;

        bool all;
        bool now;
        bool wait;
        const char *grace_period;

        bool bootstrap; /* of `wait` */
        bool critical;
        const char *timeout;

        const char *key; /* files and keys for `source` */
        const char *keys;
        const char *next_keys;
        const char *fleet;
        const char *number;
        const char *expires;
        const char *progress_deadline;
        const char *platform; /* of the images in an index */
        const char *from;
        const char *cache;
        const char *deltas;
        bool no_images;
        bool check;
        bool rotate; /* for the identity of `source` */
        bool remove_old;
        OptionValues recipients; /* of `secret` */
        OptionValues recipient_files;
        const char *type;

        char *const *words; /* arguments that are not options; NULL-terminated */
        size_t n_words;
} Options;

typedef struct Option {
        const char *name;
        char letter;          /* 0: none */
        const char *argument; /* placeholder of the argument, in capitals; NULL: no argument, the
                               * option sets a bool */
        const char *help;
        size_t offset; /* in Options */
        bool is_list;  /* may be given several times; the member is an OptionValues */
} Option;

typedef struct Command {
        const char *name;
        const char *usage;
        const char *summary;
        const Option *options;
        size_t n_options;
        int (*run)(const Options *options); /* returns an exit status; prints errors */
} Command;

/* commands.c */
extern const Command commands[];
extern const size_t n_commands;
extern const Option global_options[];
extern const size_t n_global_options;

const Command *find_command(const char *name);

int run_attach(const Options *options);
int run_get(const Options *options);
int run_describe(const Options *options);
int run_cp(const Options *options);
int run_debug(const Options *options);
int run_delete(const Options *options);
int run_exec(const Options *options);
int run_images(const Options *options);
int run_logs(const Options *options);
int run_rollout(const Options *options);
int run_secret(const Options *options);
int run_source(const Options *options);
int run_top(const Options *options);
int run_match(const Options *options);
int run_wait(const Options *options);
int run_validate(const Options *options);
int run_diff(const Options *options);
int run_kubeconfig(const Options *options);
int run_version(const Options *options);
int run_help(const Options *options);

/* command-help.c */
void help_program(void);
void help_command(const Command *command);

/* Reports an unknown command. STATUS_USAGE. */
int fail_command(const char *word);

/* Reports the failure of a command: "error: <message>" on standard error. STATUS_FAILED. */
int fail_with_error(int r, const Error *error);

/* The same for an invalid command line. STATUS_USAGE. */
int fail_usage(const char *format, ...) printf_like(1, 2);

/* Reports that 'what' ("command") is unknown, and suggests the nearest candidate. STATUS_USAGE. */
int fail_unknown(const char *what, const char *word, const char *const *candidates, size_t n);

/* The nearest candidate, if it is similar enough to be a suggestion, or NULL. */
const char *find_suggestion(const char *word, const char *const *candidates, size_t n);
