/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The last two attempts of a container, as its shim replays them when the agent has connected. They
 * are kept until SHIM_EVENT_SYNCED, because the container's state follows only from the whole
 * history. */

#include "agent/pods/machine/container-machine.h"
#include "agent/sandbox/sandbox.h"

typedef struct ReplayedAttempt {
        bool is_known;
        ShimEventType type;
        unsigned attempt;
        bool is_deleted; /* its remains have been removed already */
        bool runtime_failed;
        ContainerExit exit;
        char *message;
        char *note;
} ReplayedAttempt;

typedef struct ReplayedAttempts {
        ReplayedAttempt latest;
        ReplayedAttempt previous;
} ReplayedAttempts;

/* Adds an event; the shim replays the oldest attempt first. True: *ret_obsolete is an older attempt
 * whose remains must be removed. */
bool replayed_attempts_add(ReplayedAttempts *attempts, const ShimEvent *event,
                           unsigned *ret_obsolete);
void replayed_attempts_done(ReplayedAttempts *attempts);
