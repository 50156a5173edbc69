/* SPDX-License-Identifier: Apache-2.0 */

/* What is kept of the node: since when taints are there, and what others have put onto the Node of
 * an API server, for when that is away. Lines of text, sealed; what is damaged is none. */

#include "agent/facts-private.h"
#include "agent/model/match.h"
#include "agent/model/pod.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"
#include "common/sealed.h"

#include <fcntl.h>
#include <unistd.h>

#define KEPT_MAX (1 * MIB) /* an object of the API has no more */

static const char taints_file[] = "taints", others_file[] = "node";

/* ---- both ---- */

/* "key=value:effect <time>"; the time may not be there. */
static int read_taint(char *line, NodeFacts *facts) {
        char *time = strchr(line, ' ');
        Taint *longer, *taint;
        int r;

        if (time)
                *time++ = '\0';
        longer = reallocarray(facts->taints.items, facts->taints.n + 1, sizeof(*longer));
        if (!longer)
                return -ENOMEM;
        facts->taints.items = longer;
        taint = &longer[facts->taints.n++];
        *taint = (Taint){ 0 };
        r = taint_parse(line, taint, NULL);
        if (r >= 0 && time && !(taint->time_added = strdup(time)))
                r = -ENOMEM;
        return r;
}

static void write_taint(const Taint *taint, FILE *out) {
        char buffer[TAINT_SIZE];

        fputs(taint_format(taint, buffer), out);
        if (taint->time_added)
                fprintf(out, " %s", taint->time_added);
        fputc('\n', out);
}

typedef int (*read_line_t)(char *line, NodeFacts *facts);

static int recall(const char *state_dir, const char *name, read_line_t read_line, NodeFacts *ret) {
        cleanup_close int fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_with(node_facts_done) NodeFacts facts = { 0 };
        cleanup_free char *text = NULL;
        char *rest, *line;
        int r = fd < 0 ? -errno : sealed_read_at(fd, name, KEPT_MAX, &text);

        if (r == -EBADMSG)
                sealed_set_aside_at(fd, name);
        for (rest = text; r >= 0 && (line = strsep(&rest, "\n"));)
                if (*line)
                        r = read_line(line, &facts);
        if (r == -ENOMEM)
                return r;
        *ret = (NodeFacts){ 0 };
        if (r < 0)
                return 0;
        *ret = facts;
        facts = (NodeFacts){ 0 };
        return 0;
}

static int note(const char *state_dir, const char *name, const char *text, Error *reterr) {
        cleanup_close int fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 ? -errno : 0;

        if (r >= 0 && !text[0] && faccessat(fd, name, F_OK, 0) < 0)
                return 0;
        if (r >= 0)
                r = sealed_write_at(fd, name, text, 0600);
        return r < 0 ? error_setf(reterr, -r, "cannot write %s/%s: %s", state_dir, name,
                                  strerror(-r))
                     : 0;
}

/* Takes the stream of open_memstream(). */
static void note_or_say(const char *state_dir, const char *name, FILE *out, char **text) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *whole = memstream_finish(out, text);
        int r;

        *text = NULL;
        r = whole ? note(state_dir, name, whole, &error) : -ENOMEM;
        if (r < 0)
                log_error("%s", error_message(&error, r));
}

/* ---- since when taints are there ---- */

int facts_recall_taints(const char *state_dir, NodeFacts *ret) {
        return recall(state_dir, taints_file, read_taint, ret);
}

void facts_note_taints(const char *state_dir, const NodeFacts *facts) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        for (size_t i = 0; out && i < facts->taints.n; i++)
                if (facts->taints.items[i].time_added)
                        write_taint(&facts->taints.items[i], out);
        if (out)
                note_or_say(state_dir, taints_file, out, &text);
}

/* ---- what others have put onto the Node ---- */

/* "label key=value" or "taint key=value:effect <time>" */
static int read_other(char *line, NodeFacts *facts) {
        char *word = strsep(&line, " "), *key;

        if (!line)
                return -EBADMSG;
        if (streq(word, "taint"))
                return read_taint(line, facts);
        key = strsep(&line, "=");
        return line ? string_map_set(&facts->labels, key, line) : -EBADMSG;
}

int facts_recall_others(const char *state_dir, NodeFacts *ret) {
        return recall(state_dir, others_file, read_other, ret);
}

void facts_note_others(const char *state_dir, const NodeFacts *others) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        for (size_t i = 0; out && i < others->labels.n; i++)
                fprintf(out, "label %s=%s\n", others->labels.items[i].key,
                        strna(others->labels.items[i].value));
        for (size_t i = 0; out && i < others->taints.n; i++) {
                fputs("taint ", out);
                write_taint(&others->taints.items[i], out);
        }
        if (out)
                note_or_say(state_dir, others_file, out, &text);
}
