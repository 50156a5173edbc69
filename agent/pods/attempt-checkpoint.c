/* SPDX-License-Identifier: Apache-2.0 */
/* The format: "<next delay> <stop signal> <image ID> <generation> <flags>". Older
 * agents wrote only the first two fields, or the first three. */

#include "agent/pods/attempt-checkpoint.h"

#include "common/macros.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each is a letter of the flags. */
enum {
        CHECKPOINT_POST_STARTED = 'p',
        CHECKPOINT_STARTED = 's',
        CHECKPOINT_READY = 'r',
        CHECKPOINT_KILLED = 'k',
};

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
}
