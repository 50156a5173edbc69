/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The termination of a pod: its grace period (terminationGracePeriodSeconds, or that of a deletion
 * request), and the deletion request, which is on disk in <state-dir>/pods/<uid>/deletion. A
 * deleted pod that is still desired starts again as a new instance, so a restarted agent must not
 * keep the remains of the old one. */

#include "agent/pods/pod/pod-instance.h"

typedef struct PodTermination {
        bool has_grace; /* a deletion request has set a grace period: */
        int64_t grace_seconds;
        uint64_t deletion_time;  /* realtime of the end of the grace period; 0: not being
                                  * terminated */
        uint64_t stopping_since; /* awake time; 0: the containers are not being stopped */
} PodTermination;

/* The pod's grace period; 'limit_usec' is the limit set by its failure; 0: none. */
uint64_t pod_grace_period_usec(const PodTermination *termination, const PodSpec *spec,
                               uint64_t limit_usec);

/* The rest of a grace period. It is never zero, because containers that had to wait for others need
 * a little time. */
uint64_t pod_remaining_grace_usec(const PodTermination *termination, uint64_t grace_usec);

/* Whether the grace period is over. */
bool pod_is_beyond_grace(const PodTermination *termination, uint64_t grace_usec);

/* Records a deletion request with a grace period (-1: the pod's own): the shortest one applies.
 * Writes the file; an error is logged. */
void pod_termination_request(PodTermination *termination, const PodInstance *pod,
                             int64_t grace_seconds);

/* 1: an earlier agent received a deletion request; 0: none; or -errno if it cannot be read. */
int pod_termination_load(PodTermination *termination, const PodInstance *pod);
