/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay exec`: runs a command in a running container, with the local streams or terminal, and
 * exits with its exit code. */

#include "agent/cli/target.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/terminal-session.h"
#include "common/cleanup.h"

#include <stdio.h>
#include <unistd.h>

static SessionStreams choose_streams(const Options *options) {
        SessionStreams streams = {
                .input_fd = options->interactive ? STDIN_FILENO : -EBADF,
                .output_fd = STDOUT_FILENO,
                .error_fd = STDERR_FILENO,
                .has_terminal = options->tty,
        };

        if (streams.has_terminal && options->interactive && !isatty(STDIN_FILENO)) {
                fprintf(stderr, "Unable to use a TTY - input is not a terminal or the right kind "
                                "of file\n");
                streams.has_terminal = false;
        }
        return streams;
}

int run_exec(const Options *options) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *pod = NULL;
        SessionStreams streams = choose_streams(options);
        int code = 0, r;

        if (options->n_words < 2)
                return fail_usage(
                        "a pod and a command are required: 'mainstay exec POD [-c CONTAINER] -- "
                        "COMMAND'");
        r = find_pod(options, options->words[0], &pod, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        r = session_exec(options->socket, pod, choose_container(pod, options->container),
                         options->words + 1, &streams, &code, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        if (code != 0)
                fprintf(stderr, "command terminated with exit code %d\n", code);
        return code;
}
