/* SPDX-License-Identifier: Apache-2.0 */
/* The format: a line for each container, "<name> <attempt> <exit code> <reason> <started>
 * <finished> <message>"; a line with '-' before it and the same attempt records how the previous
 * attempt ended; "+<name> <attempt> <checkpoint>". Agents that support only the first kind of line
 * ignore the others. */

#include "agent/pods/container/terminated-containers.h"

#include "agent/model/containers.h"
#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/fsync-queue.h"
#include "common/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>

enum {
        TERMINATED_FILE_MAX = 256 * 1024,
        NEWLINE_IN_MESSAGE = '\x1f', /* a message must be on a single line */
};

static void replace_character(char *text, char from, char to) {
        for (; *text; text++)
                if (*text == from)
                        *text = to;
}

/* An init container with its own policy Never can fail permanently even in a pod that always
 * restarts. */
bool pod_may_complete(const PodSpec *spec) {
        const Container *container;

        if (spec->restart_policy != RESTART_POLICY_ALWAYS || spec->ephemeral_containers.n > 0)
                return true;
        pod_foreach_container(container, spec)
                if (container->restart_policy != RESTART_POLICY_UNSET &&
                    container_role(spec, container) != ROLE_SIDECAR)
                        return true;
        return false;
}

static void print_terminated_state(FILE *out, const char *mark, const TerminatedContainer *c,
                                   const ContainerExit *end, const char *reason) {
        cleanup_free char *message = strdup(strna(end->message));

        if (!message)
                return;
        replace_character(message, '\n', NEWLINE_IN_MESSAGE);
        (void) fprintf(out, "%s%s %u %d %s %" PRIu64 " %" PRIu64 " %s\n", mark, c->name, c->attempt,
                       end->exit_code, reason[0] ? reason : "Error", end->started_at,
                       end->finished_at, message);
}

static char *print_terminated_containers(const TerminatedContainer *containers, size_t n) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                const TerminatedContainer *c = &containers[i];

                print_terminated_state(out, "", c, &c->exit, c->reason);
                if (c->has_previous)
                        print_terminated_state(out, "-", c, &c->previous, c->previous_reason);
                if (c->checkpoint)
                        (void) fprintf(out, "+%s %u %s\n", c->name, c->attempt, c->checkpoint);
        }
        return memstream_finish(out, &text);
}

static int write_terminated_file(const PodInstance *pod, const char *text) {
        cleanup_close int fd = pod_instance_open_state_dir(pod);

        if (fd < 0)
                return fd;
        fsync_queue_add(pod->context->state_sync, pod->pod->metadata.uid);
        if (text[0])
                return checksummed_write_at(fd, TERMINATED_FILE_NAME, text, 0600);
        return unlink_if_present_at(fd, TERMINATED_FILE_NAME);
}

void terminated_containers_store(TerminatedContainers *terminated, const PodInstance *pod,
                                 const TerminatedContainer *containers, size_t n) {
        cleanup_free char *text = print_terminated_containers(containers, n);
        int r;

        if (!text || streq(text, strna(terminated->text)))
                return;
        r = write_terminated_file(pod, text);
        if (r < 0) {
                if (r != terminated->error)
                        log_warning("Cannot write the checkpoint of the terminated containers of "
                                    "pod '%s': %s; retrying",
                                    pod->description, strerror(-r));
                terminated->error = r;
                return;
        }
        terminated->error = 0;
        free(terminated->text);
        terminated->text = TAKE_PTR(text);
}

int terminated_containers_load(TerminatedContainers *terminated, const PodInstance *pod) {
        int r = pod_instance_load_file(pod, TERMINATED_FILE_NAME, TERMINATED_FILE_MAX,
                                       "the checkpoint of its terminated containers",
                                       "their exit codes are unknown", &terminated->text);

        return MIN(r, 0);
}

/* The length of "<name> <attempt>" at the start of a line, or 0. */
static size_t parse_attempt(const char *line, const char *name, unsigned *ret) {
        size_t length = strlen(name);
        int at = 0;

        if (strncmp(line, name, length) != 0 || line[length] != ' ' ||
            sscanf(line + length, " %u%n", ret, &at) < 1)
                return 0;
        return length + (size_t) at;
}

/* The text after "<name> <attempt> ", or NULL. */
static char *match_terminated_line(char *line, const char *name, unsigned attempt) {
        unsigned found;
        size_t length = parse_attempt(line, name, &found);

        if (length == 0 || found != attempt)
                return NULL;
        line += length;
        return line + (*line == ' ');
}

static bool parse_terminated_state(char *text, ContainerExit *ret,
                                   char reason[TERMINATED_REASON_SIZE]) {
        int at = 0;

        *ret = (ContainerExit){ 0 };
        if (sscanf(text, "%d %63s %" SCNu64 " %" SCNu64 "%n", &ret->exit_code, reason,
                   &ret->started_at, &ret->finished_at, &at) < 4)
                return false;
        text += at;
        text += *text == ' ';
        replace_character(text, NEWLINE_IN_MESSAGE, '\n');
        ret->message = text[0] ? text : NULL;
        return true;
}

int terminated_containers_last_attempt(const TerminatedContainers *terminated, const char *name) {
        for (const char *line = terminated->text; line && line[0];) {
                const char *end = strchrnul(line, '\n');
                unsigned attempt;

                if (parse_attempt(line, name, &attempt) > 0 && attempt <= INT_MAX)
                        return (int) attempt;
                line = end + (*end == '\n');
        }
        return -1;
}

bool terminated_containers_find(const TerminatedContainers *terminated, const char *name,
                                unsigned attempt, TerminatedContainer *ret) {
        char *copy = terminated->text ? strdup(terminated->text) : NULL, *rest = copy, *line;
        bool is_found = false;

        *ret = (TerminatedContainer){ .name = name, .attempt = attempt, .text = copy };
        while ((line = strsep(&rest, "\n"))) {
                bool is_extra = line[0] == '-' || line[0] == '+';
                char *text = match_terminated_line(line + is_extra, name, attempt);

                if (!text)
                        continue;
                if (line[0] == '+')
                        ret->checkpoint = text;
                else if (line[0] == '-')
                        ret->has_previous =
                                parse_terminated_state(text, &ret->previous, ret->previous_reason);
                else
                        is_found =
                                parse_terminated_state(text, &ret->exit, ret->reason) || is_found;
        }
        if (!is_found)
                terminated_container_done(ret);
        return is_found;
}

void terminated_container_done(TerminatedContainer *container) {
        free(container->text);
        *container = (TerminatedContainer){ 0 };
}

void terminated_containers_done(TerminatedContainers *terminated) {
        free(terminated->text);
        *terminated = (TerminatedContainers){ 0 };
}
