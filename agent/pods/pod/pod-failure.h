/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The failure of a pod as a whole (Evicted, DeadlineExceeded, node shutdown): its containers are
 * stopped, and none of them starts again until its manifest changes or, after an eviction for node
 * pressure, until the pressure is over. The failure is on disk next to the pod's record, in
 * <state-dir>/pods/<uid>/failure, so that a restarted agent does not start the pod either. */

#include "agent/pods/pod/pod-instance.h"

typedef struct PodFailure {
        char *reason; /* NULL: the pod has not failed */
        char *message;
        uint64_t grace_usec;     /* limit for the grace period of its containers; 0: none */
        bool is_until_reboot;    /* because of a node shutdown; not on disk */
        uint64_t evicted_at;     /* realtime of the eviction for node pressure; 0: not evicted */
        NodeCondition condition; /* the node's condition in that case */
} PodFailure;

/* 0 or -ENOMEM. */
int pod_failure_set(PodFailure *failure, const char *reason, const char *message);

/* Writes the file; an error is logged. */
void pod_failure_store(const PodFailure *failure, const PodInstance *pod);

/* Reads it; a damaged one is logged. 0, or -errno if it cannot be read. */
int pod_failure_load(PodFailure *failure, const PodInstance *pod);

/* Resets the failure: the pod does not count as failed anymore. */
void pod_failure_done(PodFailure *failure);
