/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The checkpoint of a container's attempt: the data that a restarted agent needs about a running
 * attempt (crash back-off, stop signal, image, user, results of hooks and probes). The shim keeps
 * it as the note of sandbox_run_container(). Pure. */

#include "agent/model/status.h"

enum {
        ATTEMPT_CHECKPOINT_MAX = 1024 /* as the shim keeps it */
};

typedef struct AttemptCheckpoint {
        uint64_t next_delay_usec; /* of the crash back-off */
        int stop_signal;          /* 0: the default */
        char *image_id;           /* NULL: not known */
        unsigned generation;      /* restarts of all containers before it */
        bool has_post_started;    /* its postStart hook has ended */
        bool has_started;         /* its startup probe has passed */
        bool is_ready;            /* its readiness probe has passed */
        bool is_killed;           /* for a failed probe or hook: its end is a failure */
        ContainerUser user;
} AttemptCheckpoint;

/* A user with so many groups that they do not fit is left out. */
void attempt_checkpoint_print(const AttemptCheckpoint *checkpoint,
                              char text[ATTEMPT_CHECKPOINT_MAX]);

/* Fields that are not in 'text' are zero. */
void attempt_checkpoint_parse(const char *text, AttemptCheckpoint *ret);
void attempt_checkpoint_done(AttemptCheckpoint *checkpoint);
