/* SPDX-License-Identifier: Apache-2.0 */

/* Checkpoints of the node: the times at which taints were added; and external labels and taints,
 * for use while the API server cannot be reached. Each file consists of lines of text and a
 * checksum; a damaged file is set aside. */

#include "agent/model/match.h"
#include "agent/model/pod.h"
#include "agent/node/node-labels-private.h"
#include "common/array.h"
#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>
#include <unistd.h>

#define LABEL_CHECKPOINT_MAX_BYTES (1 * MIB) /* the limit of an API object */

static const char taints_file[] = "taints", external_file[] = "node";

/* ---- both ---- */

/* "key=value:effect <time>"; the time is optional. */
static int read_taint_line(char *line, NodeLabelsTaints *node) {
        char *time = strchr(line, ' ');
        Taint *taint;
        int r;

        if (time)
                *time++ = '\0';
        taint = ARRAY_APPEND(node->taints.items, node->taints.n);
        if (!taint)
                return -ENOMEM;
        r = taint_parse(line, taint, NULL);
        if (r < 0)
                return r;
        if (time && !(taint->time_added = strdup(time)))
                return -ENOMEM;
        return 0;
}

static void write_taint_line(const Taint *taint, FILE *out) {
        char buffer[TAINT_SIZE];

        fputs(taint_format(taint, buffer), out);
        if (taint->time_added)
                fprintf(out, " %s", taint->time_added);
        fputc('\n', out);
}

typedef int (*read_label_line_t)(char *line, NodeLabelsTaints *node);

/* 'what' describes the file, and the consequence if it cannot be read, for the log. */
static int read_label_checkpoint(const char *state_dir, const char *name, const char *what,
                                 const char *consequence, read_label_line_t read_line,
                                 NodeLabelsTaints *ret) {
        cleanup_close int fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_with(node_labels_taints_done) NodeLabelsTaints node = { 0 };
        cleanup_free char *text = NULL;
        char *rest, *line;
        int r;

        *ret = (NodeLabelsTaints){ 0 };
        if (fd < 0)
                return 0;
        r = checksummed_load_at(fd, name, LABEL_CHECKPOINT_MAX_BYTES, what, consequence, &text);
        if (r <= 0)
                return r;
        for (rest = text; r >= 0 && (line = strsep(&rest, "\n"));)
                if (*line)
                        r = read_line(line, &node);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        *ret = node;
        node = (NodeLabelsTaints){ 0 };
        return 0;
}

static int write_label_checkpoint(const char *state_dir, const char *name, const char *text,
                                  Error *reterr) {
        cleanup_close int fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 ? -errno : 0;

        if (r >= 0 && !text[0] && faccessat(fd, name, F_OK, 0) < 0)
                return 0;
        if (r >= 0)
                r = checksummed_write_at(fd, name, text, 0600);
        return r < 0 ? error_setf(reterr, -r, "cannot write %s/%s: %s", state_dir, name,
                                  strerror(-r))
                     : 0;
}

/* Takes over the stream, which comes from open_memstream(). */
static void write_label_checkpoint_or_log(const char *state_dir, const char *name, FILE *out,
                                          char **text) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *whole = memstream_finish(out, text);
        int r;

        *text = NULL;
        r = whole ? write_label_checkpoint(state_dir, name, whole, &error) : -ENOMEM;
        if (r < 0)
                log_error_message(&error, r);
}

/* ---- when taints were added ---- */

int node_labels_load_taints(const char *state_dir, NodeLabelsTaints *ret) {
        return read_label_checkpoint(state_dir, taints_file, "The record of when taints were added",
                                     "tolerationSeconds count from now", read_taint_line, ret);
}

void node_labels_save_taints(const char *state_dir, const NodeLabelsTaints *node) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        for (size_t i = 0; out && i < node->taints.n; i++)
                if (node->taints.items[i].time_added)
                        write_taint_line(&node->taints.items[i], out);
        if (out)
                write_label_checkpoint_or_log(state_dir, taints_file, out, &text);
}

/* ---- external labels and taints ---- */

/* "label key=value" or "taint key=value:effect <time>" */
static int read_external_line(char *line, NodeLabelsTaints *node) {
        char *word = strsep(&line, " "), *key;

        if (!line)
                return -EBADMSG;
        if (streq(word, "taint"))
                return read_taint_line(line, node);
        key = strsep(&line, "=");
        return line ? string_map_set(&node->labels, key, line) : -EBADMSG;
}

int node_labels_load_external(const char *state_dir, NodeLabelsTaints *ret) {
        return read_label_checkpoint(
                state_dir, external_file, "The record of the labels and taints of the Node object",
                "they are unknown until the API server answers", read_external_line, ret);
}

void node_labels_save_external(const char *state_dir, const NodeLabelsTaints *external) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        for (size_t i = 0; out && i < external->labels.n; i++)
                fprintf(out, "label %s=%s\n", external->labels.items[i].key,
                        strna(external->labels.items[i].value));
        for (size_t i = 0; out && i < external->taints.n; i++) {
                fputs("taint ", out);
                write_taint_line(&external->taints.items[i], out);
        }
        if (out)
                write_label_checkpoint_or_log(state_dir, external_file, out, &text);
}
