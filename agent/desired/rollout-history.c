/* SPDX-License-Identifier: Apache-2.0 */
/* The text form is a line "mainstay-rollout 1" and one line for each member in order, with the
 * source last; earlier versions neither wrote nor read good_images and the source. */

#include "agent/desired/rollout-history.h"

#include "common/cleanup.h"
#include "common/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static const char rollout_header[] = "mainstay-rollout 1";

void rollout_history_done(RolloutHistory *history) {
        free(history->namespace);
        free(history->name);
        free(history->good_pod);
        free(history->reason);
        free(history->good_images);
        *history = (RolloutHistory){ 0 };
}

const char *rollout_hash_of(const Pod *pod) {
        const char *hash = string_map_get(&pod->metadata.annotations, config_hash_annotation);

        return hash && strlen(hash) < ROLLOUT_HASH_SIZE ? hash : "";
}

static void set_hash(char *to, const char *from) {
        (void) snprintf(to, ROLLOUT_HASH_SIZE, "%s", from);
}

/* ---- changes ---- */

bool rollout_history_set_tried(RolloutHistory *history, const char *hash, uint64_t now) {
        if (streq(history->tried, hash))
                return false;
        set_hash(history->tried, hash);
        set_hash(history->failed, "");
        free(history->reason);
        history->reason = NULL;
        history->since = now;
        history->number++;
        return true;
}

int rollout_history_set_good(RolloutHistory *history, const char *hash, const char *pod,
                             const char *images) {
        cleanup_free char *copy = strdup(pod), *images_copy = strdup(images);

        if (!copy || !images_copy)
                return -ENOMEM;
        free(history->good_pod);
        history->good_pod = TAKE_PTR(copy);
        free(history->good_images);
        history->good_images = TAKE_PTR(images_copy);
        set_hash(history->good, hash);
        return 0;
}

int rollout_history_set_failed(RolloutHistory *history, const char *reason) {
        char *copy = strdup(reason);

        if (!copy)
                return -ENOMEM;
        free(history->reason);
        history->reason = copy;
        set_hash(history->failed, history->tried);
        return 0;
}

/* ---- the rules ---- */

bool rollout_history_is_failed(const RolloutHistory *history) {
        return history->failed[0] && streq(history->failed, history->tried);
}

bool rollout_history_is_settled(const RolloutHistory *history) {
        return rollout_history_is_failed(history) || streq(history->good, history->tried);
}

/* ---- the text form ---- */

char *rollout_history_format(const RolloutHistory *history) {
        return text_format("%s\n%s\n%s\n%" PRId64 "\n%s\n%" PRIu64 "\n%s\n%s\n%s\n%s\n%s\n%s\n",
                           rollout_header, history->namespace, history->name, history->number,
                           history->tried, history->since, history->good, strna(history->good_pod),
                           history->failed, strna(history->reason), strna(history->good_images),
                           strna(object_source_names[history->source]));
}

/* The lines of the text form, in their order. */
typedef enum HistoryLine {
        LINE_HEADER,
        LINE_NAMESPACE,
        LINE_NAME,
        LINE_NUMBER,
        LINE_TRIED,
        LINE_SINCE,
        LINE_GOOD,
        LINE_GOOD_POD,
        LINE_FAILED,
        LINE_REASON,
        N_REQUIRED_LINES,
        LINE_GOOD_IMAGES = N_REQUIRED_LINES,
        LINE_SOURCE,
        N_HISTORY_LINES,
} HistoryLine;

/* Lines that are missing in the text are NULL. 0 or -EBADMSG. */
static int split_history(char *text, char *ret[N_HISTORY_LINES]) {
        size_t n = 0;

        for (char *end; n < N_HISTORY_LINES && *text; text = end + 1) {
                end = strchr(text, '\n');
                if (!end)
                        return -EBADMSG;
                *end = '\0';
                ret[n++] = text;
        }
        return n >= N_REQUIRED_LINES ? 0 : -EBADMSG;
}

static bool is_number_line(const char *line) {
        return line[0] && strspn(line, "0123456789") == strlen(line);
}

static bool is_history(char *const lines[N_HISTORY_LINES]) {
        return streq(lines[LINE_HEADER], rollout_header) && is_number_line(lines[LINE_NUMBER]) &&
               is_number_line(lines[LINE_SINCE]) && strlen(lines[LINE_TRIED]) < ROLLOUT_HASH_SIZE &&
               strlen(lines[LINE_GOOD]) < ROLLOUT_HASH_SIZE &&
               strlen(lines[LINE_FAILED]) < ROLLOUT_HASH_SIZE;
}

/* A member that may be NULL. */
static int copy_optional_line(const char *line, char **ret) {
        return text_replace(ret, line && line[0] ? line : NULL);
}

static int read_history(char *const lines[N_HISTORY_LINES], RolloutHistory *ret) {
        ret->number = (int64_t) MIN(strtoull(lines[LINE_NUMBER], NULL, 10), (uint64_t) INT64_MAX);
        ret->since = strtoull(lines[LINE_SINCE], NULL, 10);
        set_hash(ret->tried, lines[LINE_TRIED]);
        set_hash(ret->good, lines[LINE_GOOD]);
        set_hash(ret->failed, lines[LINE_FAILED]);
        for (ObjectSource source = 0; lines[LINE_SOURCE] && source < N_OBJECT_SOURCES; source++)
                if (streq_ptr(object_source_names[source], lines[LINE_SOURCE]))
                        ret->source = source;
        if (text_replace(&ret->namespace, lines[LINE_NAMESPACE]) < 0 ||
            text_replace(&ret->name, lines[LINE_NAME]) < 0 ||
            copy_optional_line(lines[LINE_GOOD_POD], &ret->good_pod) < 0 ||
            copy_optional_line(lines[LINE_REASON], &ret->reason) < 0 ||
            copy_optional_line(lines[LINE_GOOD_IMAGES], &ret->good_images) < 0)
                return -ENOMEM;
        return 0;
}

int rollout_history_parse(const char *text, RolloutHistory *ret) {
        cleanup_with(rollout_history_done) RolloutHistory history = { 0 };
        cleanup_free char *copy = strdup(text);
        char *lines[N_HISTORY_LINES] = { NULL };
        int r = copy ? split_history(copy, lines) : -ENOMEM;

        if (r >= 0 && !is_history(lines))
                r = -EBADMSG;
        if (r >= 0)
                r = read_history(lines, &history);
        if (r < 0)
                return r;
        *ret = history;
        history = (RolloutHistory){ 0 };
        return 0;
}
