/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A pod that the API server has bound to this node: its last valid spec, or why the node rejected
 * it; and the pod of ours that it has adopted, or that keeps running until its images are pulled.
 */

#include "agent/model/status.h"
#include "agent/pods/manager/successor-preflight.h"

/* Whether the claims of a new pod were read again: the cache, and what other pods have read, may be
 * outdated. */
typedef enum BoundPodClaims {
        CLAIMS_UNREAD,
        CLAIMS_REQUESTED,
        CLAIMS_READ, /* since it was bound, or the pod runs by them */
} BoundPodClaims;

typedef struct BoundPod {
        const Pod *desired; /* the last valid spec: 'owned', or the pod manager's pod that
                               runs by it; NULL: none */
        Pod *owned;
        const PodStatus *rejection; /* why the node does not run it; NULL: it does */
        Pod *adopted;               /* the desired version of the pod of this node that runs in its
                                     * place */
        bool is_adopted_current;    /* 'adopted' agrees with 'desired' */
        bool is_of_daemonset;       /* a DaemonSet that this node has placed controls it */
        bool is_outdated;           /* its DaemonSet does not desire it any more */
        BoundPodClaims claims;
        Preflight *preflight; /* of 'desired', while a pod that differs keeps running */
} BoundPod;

void bound_pod_done(BoundPod *bound);

/* It is not desired any more. */
void bound_pod_clear(BoundPod *bound);

/* An earlier agent ran the pod by that spec, which is copied. 0 or -ENOMEM. */
int bound_pod_restore(BoundPod *bound, const Pod *desired);

/* Takes the spec if it differs from the last one. 1: it differs, or the pod is new; 0: it does not;
 * -ENOMEM. */
int bound_pod_update_take(BoundPod *bound, Pod **desired);

/* The pod of this node runs. If it does so by the desired spec, that is borrowed from it: a node
 * with hundreds of pods holds each spec once. */
void bound_pod_borrow(BoundPod *bound, const Pod *running);

/* That pod is about to be freed. Without memory for a copy the spec is forgotten: -ENOMEM. */
int bound_pod_return(BoundPod *bound, const Pod *running);

/* The node does not admit the pod: it is reported as failed, as the kubelet does. 0 or -ENOMEM. */
int bound_pod_reject(BoundPod *bound, const char *reason, const char *message);
