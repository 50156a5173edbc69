/* SPDX-License-Identifier: Apache-2.0 */
/* The text form is a line "mainstay-rollout 1" and one line for each member, in their order, the
 * source last; earlier versions neither wrote nor read good_images and the source. */

#include "agent/desired/rollout-history.h"

#include "agent/model/rollout-deadline.h"
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

static RolloutDecision decide_rollout_at(const RolloutInput *input, uint64_t at,
                                         RolloutDecision decision, uint64_t *ret_again_at) {
        if (input->now >= at)
                return decision;
        *ret_again_at = at;
        return ROLLOUT_CONTINUES;
}

RolloutDecision rollout_decide(const RolloutInput *input, uint64_t *ret_again_at) {
        const RolloutHistory *history = input->history;
        uint64_t deadline = input->deadline_usec, at;

        *ret_again_at = 0;
        if (deadline == 0 || rollout_history_is_settled(history))
                return ROLLOUT_CONTINUES;
        if (input->is_ready) {
                at = rollout_good_at(deadline, MAX(input->ready_since, history->since));
                return decide_rollout_at(input, input->ready_since > 0 ? at : 0, ROLLOUT_IS_GOOD,
                                         ret_again_at);
        }
        if (!history->good[0])
                return ROLLOUT_CONTINUES; /* there is nothing to return to */
        at = rollout_failed_at(deadline, history->since, input->awake_since);
        return decide_rollout_at(input, at, ROLLOUT_GOES_BACK, ret_again_at);
}

/* ---- the text form ---- */

char *rollout_history_format(const RolloutHistory *history) {
        return text_format("%s\n%s\n%s\n%" PRId64 "\n%s\n%" PRIu64 "\n%s\n%s\n%s\n%s\n%s\n%s\n",
                           rollout_header, history->namespace, history->name, history->number,
                           history->tried, history->since, history->good, strna(history->good_pod),
                           history->failed, strna(history->reason), strna(history->good_images),
                           strna(object_source_names[history->source]));
}

/* Takes the text up to the next newline. 0, -EBADMSG, -ENOMEM. */
static int take_history_line(const char **text, char **ret) {
        const char *end = strchr(*text, '\n');

        if (!end)
                return -EBADMSG;
        *ret = strndup(*text, (size_t) (end - *text));
        *text = end + 1;
        return *ret ? 0 : -ENOMEM;
}

static int take_hash(const char **text, char ret[ROLLOUT_HASH_SIZE]) {
        cleanup_free char *line = NULL;
        int r = take_history_line(text, &line);

        if (r < 0)
                return r;
        if (strlen(line) >= ROLLOUT_HASH_SIZE)
                return -EBADMSG;
        set_hash(ret, line);
        return 0;
}

static int take_number(const char **text, uint64_t *ret) {
        cleanup_free char *line = NULL;
        int r = take_history_line(text, &line);

        if (r < 0)
                return r;
        if (!line[0] || strspn(line, "0123456789") != strlen(line))
                return -EBADMSG;
        *ret = strtoull(line, NULL, 10);
        return 0;
}

/* A member that may be NULL. */
static int take_optional_line(const char **text, char **ret) {
        int r = take_history_line(text, ret);

        if (r < 0)
                return r;
        if (!(*ret)[0]) {
                free(*ret);
                *ret = NULL;
        }
        return 0;
}

static int take_source(const char **text, ObjectSource *ret) {
        cleanup_free char *line = NULL;
        int r = take_history_line(text, &line);

        for (ObjectSource source = 0; r >= 0 && source < N_OBJECT_SOURCES; source++)
                if (streq_ptr(object_source_names[source], line))
                        *ret = source;
        return r;
}

int rollout_history_parse(const char *text, RolloutHistory *ret) {
        cleanup_with(rollout_history_done) RolloutHistory history = { 0 };
        cleanup_free char *header = NULL;
        uint64_t number = 0;
        int r = take_history_line(&text, &header);

        if (r < 0)
                return r;
        if (!streq(header, rollout_header))
                return -EBADMSG;
        r = take_history_line(&text, &history.namespace);
        if (r < 0)
                return r;
        r = take_history_line(&text, &history.name);
        if (r < 0)
                return r;
        r = take_number(&text, &number);
        if (r < 0)
                return r;
        r = take_hash(&text, history.tried);
        if (r < 0)
                return r;
        r = take_number(&text, &history.since);
        if (r < 0)
                return r;
        r = take_hash(&text, history.good);
        if (r < 0)
                return r;
        r = take_optional_line(&text, &history.good_pod);
        if (r < 0)
                return r;
        r = take_hash(&text, history.failed);
        if (r < 0)
                return r;
        r = take_optional_line(&text, &history.reason);
        if (r >= 0 && *text) /* of a version that supports images */
                r = take_optional_line(&text, &history.good_images);
        if (r < 0)
                return r;
        if (*text)
                r = take_source(&text, &history.source);
        if (r < 0)
                return r;
        history.number = (int64_t) MIN(number, (uint64_t) INT64_MAX);
        *ret = history;
        history = (RolloutHistory){ 0 };
        return 0;
}
