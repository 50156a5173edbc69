/* SPDX-License-Identifier: Apache-2.0 */
/* How containers have ended that do not run again. Their pod's shim knows it, but no shim outlives
 * the node: what has succeeded before a reboot must not run once more after it, and what has failed
 * is told with its own exit code. Only pods that may come to an end are looked at. */

#include "agent/pods/pod-worker-private.h"
#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/fsync-queue.h"
#include "common/log.h"
#include "common/strv.h"

#include <fcntl.h>
#include <inttypes.h>

static const char terminated_file_name[] = "ends";

enum {
        TERMINATED_FILE_MAX = 256 * 1024,
        REASON_SIZE = 64,
        NEWLINE_IN_MESSAGE = '\x1f', /* each end is one line */
};

static void replace_character(char *text, char from, char to) {
        for (; *text; text++)
                if (*text == from)
                        *text = to;
}

static bool pod_may_complete(const PodSpec *spec) {
        const Container *container;

        if (spec->restart_policy != RESTART_POLICY_ALWAYS)
                return true;
        for (size_t i = 0; i < spec->containers.n; i++) {
                container = &spec->containers.items[i];
                if (container->restart_policy != RESTART_POLICY_UNSET)
                        return true;
        }
        return false;
}

/* A line for each; "" where nobody has ended. NULL: no memory. */
static char *print_terminated(const PodWorker *worker) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (size_t i = 0; i < worker->n_containers; i++) {
                const PodContainer *c = &worker->containers[i];
                const ContainerState *end = container_machine_terminated_state(c->machine);
                cleanup_free char *message = end ? strdup(strna(end->message)) : NULL;

                if (!message)
                        continue;
                replace_character(message, '\n', NEWLINE_IN_MESSAGE);
                (void) fprintf(out, "%s %u %d %s %" PRIu64 " %" PRIu64 " %s\n", c->spec->name,
                               container_machine_attempt(c->machine), end->exit_code, end->reason,
                               end->started_at, end->finished_at, message);
        }
        return memstream_finish(out, &text);
}

static int write_terminated_file(const PodWorker *worker, const char *text) {
        cleanup_close int fd = pod_worker_open_state_dir(worker);

        if (fd < 0)
                return fd;
        fsync_queue_add(worker->context->state_sync, worker->pod->metadata.uid);
        if (text[0])
                return checksummed_write_at(fd, terminated_file_name, text, 0600);
        return unlinkat(fd, terminated_file_name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

void pod_worker_store_terminated(PodWorker *worker) {
        cleanup_free char *text = NULL;
        int r;

        if (!worker->is_desired || worker->needs_cleanup || worker->state == WORKER_SYNCING ||
            !pod_may_complete(&worker->pod->spec))
                return;
        text = print_terminated(worker);
        if (!text || streq(text, strna(worker->terminated)))
                return;
        r = write_terminated_file(worker, text);
        if (r < 0) { /* the next step is another try */
                if (r != worker->terminated_error)
                        (void) log_warning_errno(r,
                                                 "Cannot keep how the containers of pod '%s' ended",
                                                 worker->description);
                worker->terminated_error = r;
                return;
        }
        worker->terminated_error = 0;
        free(worker->terminated);
        worker->terminated = TAKE_PTR(text);
}

void pod_worker_load_terminated(PodWorker *worker) {
        cleanup_close int fd = pod_worker_open_state_dir(worker);
        int r = fd < 0 ? fd
                       : checksummed_read_at(fd, terminated_file_name, TERMINATED_FILE_MAX,
                                             &worker->terminated);

        if (r != -EBADMSG)
                return;
        log_warning("Pod '%s': how its containers ended is damaged, so that is unknown",
                    worker->description);
        checksummed_set_aside_at(fd, terminated_file_name);
}

/* "<name> <attempt> <exit code> <reason> <started> <finished> <message>" */
static bool parse_terminated_line(char *line, const PodContainer *c, unsigned attempt,
                                  char ret_reason[REASON_SIZE], ContainerExit *ret) {
        size_t length = strlen(c->spec->name);
        unsigned number;
        int at = 0;

        if (strncmp(line, c->spec->name, length) != 0 || line[length] != ' ' ||
            sscanf(line + length, " %u %d %63s %" SCNu64 " %" SCNu64 "%n", &number, &ret->exit_code,
                   ret_reason, &ret->started_at, &ret->finished_at, &at) < 5 ||
            number != attempt)
                return false;
        line += length + (size_t) at;
        line += *line == ' ';
        replace_character(line, NEWLINE_IN_MESSAGE, '\n');
        ret->message = line[0] ? line : NULL;
        return true;
}

bool pod_container_recover_terminated(PodContainer *c, unsigned attempt) {
        cleanup_free char *copy = c->pod->terminated ? strdup(c->pod->terminated) : NULL;
        char *rest = copy, *line, reason[REASON_SIZE];

        while ((line = strsep(&rest, "\n"))) {
                ContainerExit end = { 0 };

                if (!parse_terminated_line(line, c, attempt, reason, &end))
                        continue;
                container_machine_recover_exit(c->machine, attempt, &end, reason);
                return true;
        }
        return false;
}
