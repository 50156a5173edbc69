/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/command-attach.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/target.h"
#include "agent/cli/terminal-session.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/json-text.h"

#include <stdio.h>
#include <unistd.h>

/* mainstay attach: the streams of a running container itself. */

static const json_t *find_named(const json_t *list, const char *name) {
        size_t i;
        json_t *item;

        json_array_foreach(list, i, item)
                if (streq_ptr(json_text(item, "name"), name))
                        return item;
        return NULL;
}

static const json_t *find_container_spec(const json_t *pod, const char *name) {
        static const char *const lists[] = { "containers", "initContainers",
                                             "ephemeralContainers" };
        const json_t *found = NULL;

        for (size_t i = 0; i < N_ELEMENTS(lists) && !found; i++)
                found = find_named(json_at(pod, "spec", lists[i]), name);
        return found;
}

const json_t *find_container_status_of(const json_t *pod, const char *name) {
        static const char *const lists[] = { "containerStatuses", "initContainerStatuses",
                                             "ephemeralContainerStatuses" };
        const json_t *found = NULL;

        for (size_t i = 0; i < N_ELEMENTS(lists) && !found; i++)
                found = find_named(json_at(pod, "status", lists[i]), name);
        return found;
}

static bool container_has(const json_t *pod, const char *container, const char *field) {
        return json_is_true(json_object_get(find_container_spec(pod, container), field));
}

static SessionStreams choose_attach_streams(const Options *options, bool has_terminal) {
        SessionStreams streams = {
                .input_fd = options->interactive ? STDIN_FILENO : -EBADF,
                .output_fd = STDOUT_FILENO,
                .error_fd = has_terminal ? -EBADF : STDERR_FILENO,
                .has_terminal = has_terminal && options->tty,
        };

        if (streams.has_terminal && options->interactive && !isatty(STDIN_FILENO)) {
                fprintf(stderr, "Unable to use a TTY - input is not a terminal or the right kind "
                                "of file\n");
                streams.has_terminal = false;
        }
        return streams;
}

int attach_container_streams(const Options *options, const json_t *pod, const char *container,
                             Error *reterr) {
        bool has_terminal = container_has(pod, container, "tty");
        SessionStreams streams = choose_attach_streams(options, has_terminal);

        if (options->tty && !has_terminal)
                print_line(stderr, "Unable to use a TTY - container %s did not allocate one",
                           container);
        if (options->interactive && !container_has(pod, container, "stdin"))
                print_line(stderr, "Unable to pass standard input - container %s does not read it",
                           container);
        if (streams.has_terminal && options->interactive)
                fprintf(stderr, "If you don't see a command prompt, try pressing enter.\n");
        return session_attach(options->socket, pod, container, &streams, reterr);
}

static int attach_to_container(const Options *options, const json_t *pod, const char *container) {
        cleanup_error Error error = ERROR_NULL;
        int r = attach_container_streams(options, pod, container, &error);

        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}

int run_attach(const Options *options) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *pod = NULL;
        int r;

        if (options->n_words != 1)
                return fail_usage("one pod is required: 'mainstay attach POD [-c CONTAINER]'");
        r = find_pod(options, options->words[0], &pod, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        return attach_to_container(options, pod, choose_container(pod, options->container));
}
