/* SPDX-License-Identifier: Apache-2.0 */
/* How containers have ended that do not run again. Their pod's shim knows it, but no shim outlives
 * the node: what has succeeded before a reboot must not run once more after it, and what has failed
 * is told with its own exit code. Only pods that may come to an end are looked at. */

#include "agent/supervise/pod-internal.h"
#include "common/cleanup.h"
#include "common/dir-sync.h"
#include "common/file.h"
#include "common/log.h"
#include "common/sealed.h"
#include "common/strv.h"

#include <fcntl.h>
#include <inttypes.h>

static const char file_name[] = "ends";

enum {
        ENDS_MAX = 256 * 1024,
        REASON_SIZE = 64,
        NEWLINE_IN_MESSAGE = '\x1f', /* each end is one line */
};

static void exchange(char *text, char from, char to) {
        for (; *text; text++)
                if (*text == from)
                        *text = to;
}

static bool may_come_to_an_end(const PodSpec *spec) {
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
static char *print_ends(const PodLife *life) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (size_t i = 0; i < life->n_containers; i++) {
                const PodContainer *c = &life->containers[i];
                const ContainerState *end = container_end(c->life);
                cleanup_free char *message = end ? strdup(strna(end->message)) : NULL;

                if (!message)
                        continue;
                exchange(message, '\n', NEWLINE_IN_MESSAGE);
                (void) fprintf(out, "%s %u %d %s %" PRIu64 " %" PRIu64 " %s\n", c->spec->name,
                               container_attempt(c->life), end->exit_code, end->reason,
                               end->started_at, end->finished_at, message);
        }
        return memstream_finish(out, &text);
}

static int write_ends(const PodLife *life, const char *text) {
        cleanup_close int fd = pod_life_open_state(life);

        if (fd < 0)
                return fd;
        dir_sync_mark(life->context->disk, life->pod->metadata.uid);
        if (text[0])
                return sealed_write_at(fd, file_name, text, 0600);
        return unlinkat(fd, file_name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

void pod_life_keep_ends(PodLife *life) {
        cleanup_free char *text = NULL;
        int r;

        if (!life->is_wanted || life->must_clean || life->phase == PHASE_SYNCING ||
            !may_come_to_an_end(&life->pod->spec))
                return;
        text = print_ends(life);
        if (!text || streq(text, strna(life->ends)))
                return;
        r = write_ends(life, text);
        if (r < 0) { /* the next step is another try */
                if (r != life->ends_error)
                        (void) log_warning_errno(r,
                                                 "Cannot keep how the containers of pod '%s' ended",
                                                 life->description);
                life->ends_error = r;
                return;
        }
        life->ends_error = 0;
        free(life->ends);
        life->ends = TAKE_PTR(text);
}

void pod_life_load_ends(PodLife *life) {
        cleanup_close int fd = pod_life_open_state(life);
        int r = fd < 0 ? fd : sealed_read_at(fd, file_name, ENDS_MAX, &life->ends);

        if (r != -EBADMSG)
                return;
        log_warning("Pod '%s': how its containers ended is damaged, so that is unknown",
                    life->description);
        sealed_set_aside_at(fd, file_name);
}

/* "<name> <attempt> <exit code> <reason> <started> <finished> <message>" */
static bool parse_end(char *line, const PodContainer *c, unsigned attempt,
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
        exchange(line, NEWLINE_IN_MESSAGE, '\n');
        ret->message = line[0] ? line : NULL;
        return true;
}

bool pod_container_recover_end(PodContainer *c, unsigned attempt) {
        cleanup_free char *copy = c->pod->ends ? strdup(c->pod->ends) : NULL;
        char *rest = copy, *line, reason[REASON_SIZE];

        while ((line = strsep(&rest, "\n"))) {
                ContainerExit end = { 0 };

                if (!parse_end(line, c, attempt, reason, &end))
                        continue;
                container_recover_end(c->life, attempt, &end, reason);
                return true;
        }
        return false;
}
