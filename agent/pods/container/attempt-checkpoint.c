/* SPDX-License-Identifier: Apache-2.0 */
/* The format: "<next delay> <stop signal> <image ID> <generation> <flags> <user>:<group>:<groups>".
 * Older agents wrote only the first two fields, or three, or five. */

#include "agent/pods/container/attempt-checkpoint.h"

#include "common/macros.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each flag is represented by a letter. */
enum {
        CHECKPOINT_POST_STARTED = 'p',
        CHECKPOINT_STARTED = 's',
        CHECKPOINT_READY = 'r',
        CHECKPOINT_KILLED = 'k',
};

/* Adds the user with the blank before it, or nothing if the user is unknown or does not fit. */
static void append_user(const ContainerUser *user, char text[ATTEMPT_CHECKPOINT_MAX]) {
        size_t start = strlen(text), n = start;

        if (!user->is_known)
                return;
        n += (size_t) snprintf(text + n, ATTEMPT_CHECKPOINT_MAX - n, " %" PRId64 ":%" PRId64 ":",
                               user->uid, user->gid);
        for (size_t i = 0; i < user->groups.n && n < ATTEMPT_CHECKPOINT_MAX; i++)
                n += (size_t) snprintf(text + n, ATTEMPT_CHECKPOINT_MAX - n, "%s%" PRId64,
                                       i > 0 ? "," : "", user->groups.items[i]);
        if (n >= ATTEMPT_CHECKPOINT_MAX)
                text[start] = '\0';
}

void attempt_checkpoint_print(const AttemptCheckpoint *checkpoint,
                              char text[ATTEMPT_CHECKPOINT_MAX]) {
        char flags[5];
        size_t n = 0;

        if (checkpoint->has_post_started)
                flags[n++] = CHECKPOINT_POST_STARTED;
        if (checkpoint->has_started)
                flags[n++] = CHECKPOINT_STARTED;
        if (checkpoint->is_ready)
                flags[n++] = CHECKPOINT_READY;
        if (checkpoint->is_killed)
                flags[n++] = CHECKPOINT_KILLED;
        flags[n] = '\0';
        (void) snprintf(text, ATTEMPT_CHECKPOINT_MAX, "%" PRIu64 " %d %s %u %s",
                        checkpoint->next_delay_usec, checkpoint->stop_signal,
                        strna(checkpoint->image_id), checkpoint->generation, flags);
        append_user(&checkpoint->user, text);
}

/* "0:0:10,2000". */
static void parse_user(const char *text, ContainerUser *ret) {
        char *rest;

        ret->uid = strtoll(text, &rest, 10);
        if (rest == text || *rest != ':')
                return;
        text = rest + 1;
        ret->gid = strtoll(text, &rest, 10);
        ret->is_known = rest != text && *rest == ':';
        ret->groups.items = calloc(strlen(rest) + 1, sizeof(*ret->groups.items));
        while (ret->is_known && ret->groups.items && rest[0] && rest[1]) {
                text = rest + 1;
                ret->groups.items[ret->groups.n] = strtoll(text, &rest, 10);
                if (rest == text)
                        break;
                ret->groups.n++;
        }
}

void attempt_checkpoint_parse(const char *text, AttemptCheckpoint *ret) {
        const char *flags = "";
        char *rest;

        *ret = (AttemptCheckpoint){ .next_delay_usec = strtoull(text, &rest, 10) };
        ret->stop_signal = (int) strtol(rest, &rest, 10);
        if (*rest == ' ') {
                size_t length = strcspn(rest + 1, " ");

                ret->image_id = strndup(rest + 1, length);
                ret->generation = (unsigned) strtoul(rest + 1 + length, &rest, 10);
                flags = rest;
        }
        ret->has_post_started = strchr(flags, CHECKPOINT_POST_STARTED);
        ret->has_started = strchr(flags, CHECKPOINT_STARTED);
        ret->is_ready = strchr(flags, CHECKPOINT_READY);
        ret->is_killed = strchr(flags, CHECKPOINT_KILLED);
        if (flags[0] == ' ' && strchr(flags + 1, ' '))
                parse_user(strchr(flags + 1, ' ') + 1, &ret->user);
}

void attempt_checkpoint_done(AttemptCheckpoint *checkpoint) {
        free(checkpoint->image_id);
        container_user_done(&checkpoint->user);
        *checkpoint = (AttemptCheckpoint){ 0 };
}
