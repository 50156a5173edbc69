/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The checkpoint of a container's attempt: the data that a restarted agent needs about a running
 * attempt (crash back-off, stop signal, image, user, results of hooks and probes). The shim keeps
 * it as the note of sandbox_run_container(). Pure. */

#include "agent/model/status.h"

enum {
        ATTEMPT_CHECKPOINT_MAX = 1024 /* limit of the shim */
};

typedef struct AttemptCheckpoint {
        uint64_t next_delay_usec; /* for the crash back-off */
        int stop_signal;          /* 0: the default */
        char *image_id;           /* NULL: not known */
        unsigned generation;      /* number of earlier restarts of all containers */
        bool has_post_started;    /* the postStart hook has ended */
        bool has_started;         /* the startup probe has passed */
        bool is_ready;            /* the readiness probe has passed */
        bool is_killed;           /* killed because of a failed probe or hook, so its end counts as
                                   * a failure */
        ContainerUser user;
} AttemptCheckpoint;

/* A user with too many groups to fit is omitted. */
void attempt_checkpoint_print(const AttemptCheckpoint *checkpoint,
                              char text[ATTEMPT_CHECKPOINT_MAX]);

/* Fields that are not in 'text' are zero. */
void attempt_checkpoint_parse(const char *text, AttemptCheckpoint *ret);
void attempt_checkpoint_done(AttemptCheckpoint *checkpoint);
