/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A pod that the API server has bound to this node: its last valid spec, or why the node rejected
 * it; and the pod of this node that it has adopted, or that keeps running until the images of the
 * bound pod are pulled.
 */

#include "agent/model/status.h"
#include "agent/pods/manager/successor-preflight.h"

/* Whether the claims of a new pod have been read again, because claims in the cache, or read for
 * other pods, may be outdated. */
typedef enum BoundPodClaims {
        CLAIMS_UNREAD,
        CLAIMS_REQUESTED,
        CLAIMS_READ, /* they were read since the pod was bound, or the pod runs with them */
} BoundPodClaims;

typedef struct BoundPod {
        const Pod *desired; /* the last valid spec: 'owned', or borrowed from the pod manager's pod
                             * that runs with it; NULL: none */
        Pod *owned;
        const PodStatus *rejection; /* why the node does not run it; NULL: it does */
        Pod *adopted;               /* the desired version of the pod of this node that runs in its
                                     * place */
        bool is_adopted_current;    /* 'adopted' agrees with 'desired' */
        bool is_of_daemonset;       /* its controller is a DaemonSet whose pods this node places */
        bool is_outdated;           /* its DaemonSet no longer desires it */
        BoundPodClaims claims;
        Preflight *preflight; /* the preflight of 'desired', while a pod with another spec keeps
                               * running */
} BoundPod;

void bound_pod_done(BoundPod *bound);

/* Called when the pod is no longer desired. */
void bound_pod_clear(BoundPod *bound);

/* An earlier agent ran the pod with that spec, which is copied. 0 or -ENOMEM. */
int bound_pod_restore(BoundPod *bound, const Pod *desired);

/* Takes the spec if it differs from the last one. 1: it differs, or the pod is new; 0: it does not;
 * -ENOMEM. */
int bound_pod_update_take(BoundPod *bound, Pod **desired);

/* A pod of this node runs. If it runs with the desired spec, the spec is borrowed from it: a node
 * with hundreds of pods holds each spec only once. */
void bound_pod_borrow(BoundPod *bound, const Pod *running);

/* The borrowed pod is about to be freed. -ENOMEM if there is no memory for a copy, in which case
 * the spec is lost. */
int bound_pod_return(BoundPod *bound, const Pod *running);

/* The node does not admit the pod, which is reported as failed, as in the kubelet. 0 or -ENOMEM. */
int bound_pod_reject(BoundPod *bound, const char *reason, const char *message);
