/* SPDX-License-Identifier: Apache-2.0 */

/* debug: the dump of the agent's state, its log level, and the archive for a bug report. With an
 * image, the command refers to a pod, even to one that is called "dump"; see debug-pod.c. */

#include "agent/cli/agent-client.h"
#include "agent/cli/cli.h"
#include "agent/cli/debug-bundle.h"
#include "agent/cli/debug-pod.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/text.h"

#include <stdio.h>

static int print_debug_text(const char *data, size_t length, void *userdata) {
        return fwrite(data, 1, length, stdout) == length ? 0 : -EIO;
}

static int debug_dump(const Options *options, const char *argument) {
        cleanup_error Error error = ERROR_NULL;
        int r = client_stream(options->socket, "/debug/dump", print_debug_text, NULL, &error);

        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}

static int ignore_debug_reply(const char *data, size_t length, void *userdata) {
        return 0;
}

static int set_agent_log_level(const Options *options, const char *level) {
        static const char *const levels[] = { "error", "warning", "info", "debug" };
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *path = NULL;
        int r;

        if (log_level_parse(level) < 0)
                return fail_unknown("log level", level, levels, N_ELEMENTS(levels));
        path = text_format("/debug/loglevel?level=%s", level);
        if (!path)
                return fail_with_error(-ENOMEM, &error);
        r = client_request(options->socket, "PUT", path, ignore_debug_reply, NULL, &error);
        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}

static int debug_log_level(const Options *options, const char *argument) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (argument)
                return set_agent_log_level(options, argument);
        r = client_stream(options->socket, "/debug/loglevel", print_debug_text, NULL, &error);
        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}

/* clang-format off */
static const struct {
        const char *name;
        size_t n_arguments_min, n_arguments_max;
        const char *arguments;
        int (*run)(const Options *options, const char *argument);
} debug_commands[] = {
        { "bundle",    1, 1, "one file, which must not exist", debug_bundle    },
        { "dump",      0, 0, "no arguments",                   debug_dump      },
        { "log-level", 0, 1, "one level only",                 debug_log_level },
};
/* clang-format on */

int run_debug(const Options *options) {
        const char *names[N_ELEMENTS(debug_commands)];

        if (options->image)
                return debug_pod(options);
        if (options->n_words == 0)
                return fail_usage("debug needs bundle, dump, log-level, or a pod and --image");
        for (size_t i = 0; i < N_ELEMENTS(debug_commands); i++) {
                names[i] = debug_commands[i].name;
                if (!streq(options->words[0], names[i]))
                        continue;
                if (options->n_words - 1 < debug_commands[i].n_arguments_min ||
                    options->n_words - 1 > debug_commands[i].n_arguments_max)
                        return fail_usage("debug %s takes %s", names[i],
                                          debug_commands[i].arguments);
                return debug_commands[i].run(options, options->words[1]);
        }
        if (find_suggestion(options->words[0], names, N_ELEMENTS(names)))
                return fail_unknown("debug command", options->words[0], names, N_ELEMENTS(names));
        return fail_usage(
                "debugging the pod '%s' requires --image: 'mainstay debug POD --image=IMAGE'",
                options->words[0]);
}
