/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/container/replayed-attempts.h"

#include <stdlib.h>
#include <string.h>

static void replayed_attempt_done(ReplayedAttempt *replayed) {
        free(replayed->message);
        free(replayed->note);
        *replayed = (ReplayedAttempt){ 0 };
}

bool replayed_attempts_add(ReplayedAttempts *attempts, const ShimEvent *event,
                           unsigned *ret_obsolete) {
        bool has_obsolete = false;

        if (attempts->latest.is_known && attempts->latest.attempt != event->attempt) {
                has_obsolete = attempts->previous.is_known && !attempts->previous.is_deleted;
                *ret_obsolete = attempts->previous.attempt;
                replayed_attempt_done(&attempts->previous);
                attempts->previous = attempts->latest;
                attempts->latest = (ReplayedAttempt){ 0 };
        }
        replayed_attempt_done(&attempts->latest);
        attempts->latest = (ReplayedAttempt){
                .is_known = true,
                .type = event->type,
                .attempt = event->attempt,
                .is_deleted = event->deleted,
                .runtime_failed = event->runtime_failed,
                .exit = { .exit_code = event->exit_code,
                          .oom_killed = event->oom_killed,
                          .started_at = event->started_at,
                          .finished_at = event->finished_at },
                .message = event->message ? strdup(event->message) : NULL,
                .note = event->note ? strdup(event->note) : NULL,
        };
        return has_obsolete;
}

void replayed_attempts_done(ReplayedAttempts *attempts) {
        replayed_attempt_done(&attempts->latest);
        replayed_attempt_done(&attempts->previous);
}
