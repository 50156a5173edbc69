/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The decisions about a rollout with a progress deadline, of a pod of a manifest or of a DaemonSet
 * (mainstay.dev/progress-deadline-seconds), or of a signed index: when the new revision counts as
 * good, and when it is rolled back. Kubernetes has this for Deployments only
 * (progressDeadlineSeconds). Pure; all in microseconds of one clock. */

#include "agent/model/daemonset.h"

/* Within which time a new revision must be good, so that it is not rolled back; 0: no deadline. */
uint64_t pod_progress_deadline_usec(const Pod *pod);
uint64_t daemonset_progress_deadline_usec(const DaemonSet *set);

typedef struct RolloutState {
        uint64_t deadline_usec;
        uint64_t since;            /* when the rollout began */
        bool is_settled;           /* there is no decision to make */
        bool can_go_back;          /* there is a good revision to return to */
        bool must_be_good_in_time; /* within the deadline; otherwise it must only be ready */
        bool is_ready;             /* the new revision is, */
        uint64_t ready_since;      /* since then; 0: for long enough */
        uint64_t awake_since;      /* agent and machine, the later of the two */
        uint64_t now;
} RolloutState;

typedef enum RolloutDecision {
        ROLLOUT_CONTINUES,
        ROLLOUT_IS_GOOD,
        ROLLOUT_GOES_BACK,
} RolloutDecision;

/* The decision for the new revision. '*ret_again_at' is the time when that changes by itself, or 0.
 */
RolloutDecision rollout_decide(const RolloutState *rollout, uint64_t *ret_again_at);
