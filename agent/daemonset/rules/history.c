/* SPDX-License-Identifier: Apache-2.0 */

/* Revision histories; see the header. The text form: a line with the version, then a line for each
 * field, which starts with its key. Texts from users (causes, reasons) are the rest of a line and
 * contain no line breaks. */

#include "agent/daemonset/rules/history.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char version_line[] = "mainstay-daemonset 1";

static void controller_revision_done(ControllerRevision *revision) {
        free(revision->template);
        free(revision->cause);
}

void daemonset_history_done(DaemonSetHistory *history) {
        for (size_t i = 0; i < history->revisions.n; i++)
                controller_revision_done(&history->revisions.items[i]);
        free(history->revisions.items);
        free(history->namespace);
        free(history->name);
        free(history->selector);
        free(history->source);
        free(history->set);
        free(history->pin_reason);
        *history = (DaemonSetHistory){ 0 };
}

static size_t find_revision_index(const DaemonSetHistory *history, const char *hash) {
        size_t i = 0;

        while (i < history->revisions.n && !streq(history->revisions.items[i].hash, hash))
                i++;
        return i;
}

const ControllerRevision *daemonset_history_find(const DaemonSetHistory *history,
                                                 const char *hash) {
        size_t i = find_revision_index(history, hash);

        return i < history->revisions.n ? &history->revisions.items[i] : NULL;
}

const ControllerRevision *daemonset_history_find_number(const DaemonSetHistory *history,
                                                        int64_t number) {
        for (size_t i = 0; i < history->revisions.n; i++)
                if (history->revisions.items[i].number == number)
                        return &history->revisions.items[i];
        return NULL;
}

const char *daemonset_history_desired(const DaemonSetHistory *history) {
        return history->pinned[0] ? history->pinned : history->template_hash;
}

/* A copy with control characters replaced by blanks. */
static char *copy_as_one_line(const char *text) {
        char *copy = strdup(text);

        for (char *p = copy; p && *p; p++)
                if (iscntrl((unsigned char) *p))
                        *p = ' ';
        return copy;
}

static void copy_revision_hash(char to[REVISION_HASH_SIZE], const char *from) {
        (void) snprintf(to, REVISION_HASH_SIZE, "%s", from);
}

static int64_t next_revision_number(const DaemonSetHistory *history) {
        size_t n = history->revisions.n;

        return n > 0 ? history->revisions.items[n - 1].number + 1 : 1;
}

static int append_revision(DaemonSetHistory *history, ControllerRevision *revision) {
        ControllerRevision *added = ARRAY_APPEND(history->revisions.items, history->revisions.n);

        if (!added)
                return -ENOMEM;
        *added = *revision;
        *revision = (ControllerRevision){ 0 };
        return 0;
}

/* A known revision moves to the end and gets the next number. */
static void move_revision_to_end(DaemonSetHistory *history, size_t i) {
        ControllerRevision revision = history->revisions.items[i];

        revision.number = next_revision_number(history);
        history->revisions.n--;
        memmove(&history->revisions.items[i], &history->revisions.items[i + 1],
                (history->revisions.n - i) * sizeof(revision));
        history->revisions.items[history->revisions.n++] = revision;
}

static int make_revision_latest(DaemonSetHistory *history, const char *hash, const char *template,
                                const char *cause, uint64_t now) {
        cleanup_with(controller_revision_done)
                ControllerRevision revision = { .number = next_revision_number(history),
                                                .created = now };
        size_t i = find_revision_index(history, hash);

        if (i < history->revisions.n) {
                if (i + 1 < history->revisions.n)
                        move_revision_to_end(history, i);
                return 0;
        }
        if (!template)
                return -ENOENT;
        copy_revision_hash(revision.hash, hash);
        revision.template = strdup(template);
        revision.cause = cause ? copy_as_one_line(cause) : NULL;
        if (!revision.template || (cause && !revision.cause))
                return -ENOMEM;
        return append_revision(history, &revision);
}

int daemonset_history_set_template(DaemonSetHistory *history, const char *hash,
                                   const char *template, const char *cause, uint64_t now_realtime) {
        int r;

        if (streq(history->template_hash, hash))
                return 0;
        r = make_revision_latest(history, hash, template, cause, now_realtime);
        if (r < 0)
                return r;
        if (history->created == 0)
                history->created = now_realtime;
        copy_revision_hash(history->template_hash, hash);
        history->pinned[0] = '\0';
        free(history->pin_reason);
        history->pin_reason = NULL;
        history->rollout_since = streq(history->last_available, hash) ? 0 : now_realtime;
        return 1;
}

int daemonset_history_pin(DaemonSetHistory *history, const char *hash, const char *template,
                          const char *reason, uint64_t now_realtime) {
        char copy[REVISION_HASH_SIZE];
        char *line = copy_as_one_line(reason);
        int r;

        if (!line)
                return -ENOMEM;
        copy_revision_hash(copy, hash); /* it may point into a revision that is about to move */
        r = make_revision_latest(history, copy, template, NULL, now_realtime);
        if (r < 0) {
                free(line);
                return r;
        }
        free(history->pin_reason);
        history->pin_reason = line;
        if (streq(copy, history->template_hash))
                history->pinned[0] = '\0';
        else
                copy_revision_hash(history->pinned, copy);
        history->rollout_since = streq(history->last_available, copy) ? 0 : now_realtime;
        return 0;
}

bool daemonset_history_mark_available(DaemonSetHistory *history) {
        const char *desired = daemonset_history_desired(history);
        bool has_changed = history->rollout_since != 0 || !streq(history->last_available, desired);

        history->rollout_since = 0;
        copy_revision_hash(history->last_available, desired);
        return has_changed;
}

bool daemonset_history_can_go_back(const DaemonSetHistory *history) {
        const char *desired = daemonset_history_desired(history);

        return history->rollout_since > 0 && history->last_available[0] &&
               !streq(history->last_available, desired) && daemonset_history_find(history, desired);
}

static bool is_revision_needed(const DaemonSetHistory *history,
                               const ControllerRevision *revision) {
        return streq(revision->hash, daemonset_history_desired(history)) ||
               streq(revision->hash, history->last_available) ||
               streq(revision->hash, history->template_hash);
}

bool daemonset_history_truncate(DaemonSetHistory *history, int64_t limit) {
        int64_t n_old = -1; /* the desired one is not counted */
        bool has_removed = false;

        n_old += (int64_t) history->revisions.n;
        for (size_t i = 0; i < history->revisions.n && n_old > limit;) {
                if (is_revision_needed(history, &history->revisions.items[i])) {
                        i++;
                        continue;
                }
                controller_revision_done(&history->revisions.items[i]);
                history->revisions.n--;
                memmove(&history->revisions.items[i], &history->revisions.items[i + 1],
                        (history->revisions.n - i) * sizeof(ControllerRevision));
                n_old--;
                has_removed = true;
        }
        return has_removed;
}

static void print_history_line(FILE *out, const char *word, const char *value) {
        if (value && value[0])
                fprintf(out, "%s %s\n", word, value);
}

char *daemonset_history_format(const DaemonSetHistory *history) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        fprintf(out, "%s\n", version_line);
        print_history_line(out, "namespace", history->namespace);
        print_history_line(out, "name", history->name);
        print_history_line(out, "origin", history->source); /* the key of earlier versions */
        print_history_line(out, "set", history->set);
        print_history_line(out, "orphaning", history->is_orphaning ? "yes" : NULL);
        print_history_line(out, "selector", history->selector);
        print_history_line(out, "file", history->template_hash);
        print_history_line(out, "pinned", history->pinned);
        print_history_line(out, "reason", history->pin_reason);
        print_history_line(out, "good", history->last_available);
        fprintf(out, "created %" PRIu64 "\n", history->created);
        if (history->rollout_since > 0)
                fprintf(out, "rollout %" PRIu64 "\n", history->rollout_since);
        for (size_t i = 0; i < history->revisions.n; i++) {
                const ControllerRevision *revision = &history->revisions.items[i];

                fprintf(out, "revision %" PRId64 " %s %" PRIu64 " %s\n", revision->number,
                        revision->hash, revision->created, revision->template);
                print_history_line(out, "cause", revision->cause);
        }
        return memstream_finish(out, &text);
}

static int read_history_revision(char *text, DaemonSetHistory *history) {
        cleanup_with(controller_revision_done) ControllerRevision revision = { 0 };
        int at = 0;

        if (sscanf(text, "%" SCNd64 " %10s %" SCNu64 " %n", &revision.number, revision.hash,
                   &revision.created, &at) < 3 ||
            at == 0 || !text[at] || revision.number < next_revision_number(history))
                return -EBADMSG;
        revision.template = strdup(text + at);
        return revision.template ? append_revision(history, &revision) : -ENOMEM;
}

static int read_history_text(char **text, const char *value) {
        free(*text);
        *text = strdup(value);
        return *text ? 0 : -ENOMEM;
}

static int read_history_hash(char hash[REVISION_HASH_SIZE], const char *value) {
        if (strlen(value) >= REVISION_HASH_SIZE)
                return -EBADMSG;
        copy_revision_hash(hash, value);
        return 0;
}

/* Keys of later versions are skipped. */
static int read_history_line(const char *word, char *value, DaemonSetHistory *history) {
        size_t n = history->revisions.n;

        if (streq(word, "namespace"))
                return read_history_text(&history->namespace, value);
        if (streq(word, "name"))
                return read_history_text(&history->name, value);
        if (streq(word, "origin"))
                return read_history_text(&history->source, value);
        if (streq(word, "set"))
                return read_history_text(&history->set, value);
        if (streq(word, "orphaning"))
                history->is_orphaning = streq(value, "yes");
        if (streq(word, "selector"))
                return read_history_text(&history->selector, value);
        if (streq(word, "file"))
                return read_history_hash(history->template_hash, value);
        if (streq(word, "pinned"))
                return read_history_hash(history->pinned, value);
        if (streq(word, "good"))
                return read_history_hash(history->last_available, value);
        if (streq(word, "reason"))
                return read_history_text(&history->pin_reason, value);
        if (streq(word, "created"))
                history->created = strtoull(value, NULL, 10);
        if (streq(word, "rollout"))
                history->rollout_since = strtoull(value, NULL, 10);
        if (streq(word, "revision"))
                return read_history_revision(value, history);
        if (streq(word, "cause") && n > 0)
                return read_history_text(&history->revisions.items[n - 1].cause, value);
        return 0;
}

static int parse_history_lines(char *text, DaemonSetHistory *history) {
        char *line = strsep(&text, "\n");
        int r = streq(line, version_line) ? 0 : -EBADMSG;

        if (r < 0)
                return r;
        while ((line = strsep(&text, "\n"))) {
                char *word = strsep(&line, " ");

                if (line)
                        r = read_history_line(word, line, history);
                if (r < 0)
                        return r;
        }
        if (!history->name || !history->namespace)
                return -EBADMSG;
        return r;
}

int daemonset_history_parse(char *text, DaemonSetHistory *ret) {
        cleanup_with(daemonset_history_done) DaemonSetHistory history = { 0 };
        int r = parse_history_lines(text, &history);

        if (r < 0)
                return r;
        *ret = history;
        history = (DaemonSetHistory){ 0 };
        return 0;
}
