/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The decisions about a rollout with a progress deadline, of a pod of a manifest or of a DaemonSet
 * (mainstay.dev/progress-deadline-seconds), or of a signed index: when the new revision is
 * considered good, and when it is rolled back. Kubernetes has this only for Deployments
 * (progressDeadlineSeconds). Pure; all times are in microseconds of one clock. */

#include "agent/model/daemonset.h"

/* The time within which a new revision must become good, so that it is not rolled back; 0: no
 * deadline. */
uint64_t pod_progress_deadline_usec(const Pod *pod);
uint64_t daemonset_progress_deadline_usec(const DaemonSet *set);

typedef struct RolloutState {
        uint64_t deadline_usec;
        uint64_t since;            /* when the rollout started */
        bool is_settled;           /* no decision is pending */
        bool can_go_back;          /* there is a good revision to roll back to */
        bool must_be_good_in_time; /* it must become good within the deadline; otherwise only
                                    * ready */
        bool is_ready;             /* the new revision is ready, */
        uint64_t ready_since;      /* ready since this time; 0: for long enough */
        uint64_t awake_since;      /* the start of the agent or the last resume of the machine,
                                    * whichever is later */
        uint64_t now;
} RolloutState;

typedef enum RolloutDecision {
        ROLLOUT_CONTINUES,
        ROLLOUT_IS_GOOD,
        ROLLOUT_GOES_BACK,
} RolloutDecision;

/* The decision about the new revision. '*ret_again_at' is the time when it changes by itself, or 0.
 */
RolloutDecision rollout_decide(const RolloutState *rollout, uint64_t *ret_again_at);
