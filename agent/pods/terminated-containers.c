/* SPDX-License-Identifier: Apache-2.0 */
/* The format: a line for each container,
 * "<name> <attempt> <exit code> <reason> <started> <finished> <message>". */

#include "agent/pods/terminated-containers.h"

#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/fsync-queue.h"
#include "common/log.h"

#include <fcntl.h>
#include <inttypes.h>

static const char terminated_file_name[] = "ends";

enum {
        TERMINATED_FILE_MAX = 256 * 1024,
        NEWLINE_IN_MESSAGE = '\x1f', /* a message must not have several lines */
};

static void replace_character(char *text, char from, char to) {
        for (; *text; text++)
                if (*text == from)
                        *text = to;
}

bool pod_may_complete(const PodSpec *spec) {
        if (spec->restart_policy != RESTART_POLICY_ALWAYS || spec->ephemeral_containers.n > 0)
                return true;
        for (size_t i = 0; i < spec->containers.n; i++)
                if (spec->containers.items[i].restart_policy != RESTART_POLICY_UNSET)
                        return true;
        return false;
}

static char *print_terminated_containers(const TerminatedContainer *containers, size_t n) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (size_t i = 0; i < n; i++) {
                const ContainerExit *end = &containers[i].exit;
                cleanup_free char *message = strdup(strna(end->message));

                if (!message)
                        continue;
                replace_character(message, '\n', NEWLINE_IN_MESSAGE);
                (void) fprintf(out, "%s %u %d %s %" PRIu64 " %" PRIu64 " %s\n", containers[i].name,
                               containers[i].attempt, end->exit_code, containers[i].reason,
                               end->started_at, end->finished_at, message);
        }
        return memstream_finish(out, &text);
}

static int write_terminated_file(const PodInstance *pod, const char *text) {
        cleanup_close int fd = pod_instance_open_state_dir(pod);

        if (fd < 0)
                return fd;
        fsync_queue_add(pod->context->state_sync, pod->pod->metadata.uid);
        if (text[0])
                return checksummed_write_at(fd, terminated_file_name, text, 0600);
        return unlinkat(fd, terminated_file_name, 0) < 0 && errno != ENOENT ? -errno : 0;
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
                        (void) log_warning_errno(
                                r,
                                "Cannot write the checkpoint of the terminated containers of "
                                "pod '%s', trying again later",
                                pod->description);
                terminated->error = r;
                return;
        }
        terminated->error = 0;
        free(terminated->text);
        terminated->text = TAKE_PTR(text);
}

void terminated_containers_load(TerminatedContainers *terminated, const PodInstance *pod) {
        cleanup_close int fd = pod_instance_open_state_dir(pod);
        int r = fd < 0 ? fd
                       : checksummed_read_at(fd, terminated_file_name, TERMINATED_FILE_MAX,
                                             &terminated->text);

        if (r != -EBADMSG)
                return;
        log_warning("Pod '%s': the checkpoint of its terminated containers is damaged, setting it "
                    "aside; their exit codes are unknown",
                    pod->description);
        checksummed_set_aside_at(fd, terminated_file_name);
}

static bool parse_terminated_line(char *line, const char *name, unsigned attempt,
                                  TerminatedContainer *ret) {
        size_t length = strlen(name);
        int at = 0;

        *ret = (TerminatedContainer){ .name = name };
        if (strncmp(line, name, length) != 0 || line[length] != ' ' ||
            sscanf(line + length, " %u %d %63s %" SCNu64 " %" SCNu64 "%n", &ret->attempt,
                   &ret->exit.exit_code, ret->reason, &ret->exit.started_at, &ret->exit.finished_at,
                   &at) < 5 ||
            ret->attempt != attempt)
                return false;
        line += length + (size_t) at;
        line += *line == ' ';
        replace_character(line, NEWLINE_IN_MESSAGE, '\n');
        ret->exit.message = line[0] ? line : NULL;
        return true;
}

bool terminated_containers_find(const TerminatedContainers *terminated, const char *name,
                                unsigned attempt, TerminatedContainer *ret) {
        cleanup_free char *copy = terminated->text ? strdup(terminated->text) : NULL;
        char *rest = copy, *line;

        while ((line = strsep(&rest, "\n"))) {
                if (!parse_terminated_line(line, name, attempt, ret))
                        continue;
                ret->text = TAKE_PTR(copy);
                return true;
        }
        return false;
}

void terminated_container_done(TerminatedContainer *container) {
        free(container->text);
        *container = (TerminatedContainer){ 0 };
}

void terminated_containers_done(TerminatedContainers *terminated) {
        free(terminated->text);
        *terminated = (TerminatedContainers){ 0 };
}
