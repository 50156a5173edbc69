/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Adoption of the running pod of a DaemonSet. When a controller manager returns and binds a pod of
 * a DaemonSet to this node, this node may already run a pod that it has created for the same
 * DaemonSet. If both pods have the same template, the running pod is adopted: it keeps its name and
 * UID, its record names the API server as its source, and it is reported as the API server's pod
 * (model/pod-adoption.h). If they differ, the running pod stops before the other one starts. Only
 * the adopted pod's record is persistent. */

#include "agent/apiserver/pod-table.h"

/* The search for a pod that an API pod can adopt. Pure: it is given all candidates. */
typedef struct AdoptionSearch {
        const Pod *desired;     /* the API pod */
        bool is_of_daemonset;   /* its owner reference and its labels match the DaemonSet */
        const Pod *syncing_pod; /* its status is not known yet */
        const Pod *serving_pod; /* its template differs, but it is Ready */
        Pod *adopted;           /* the result, which the caller takes or frees */
        bool is_blocked;        /* a pod of the same DaemonSet has to stop first */
} AdoptionSearch;

typedef struct AdoptionCandidate {
        const Pod *pod;
        const PodStatus *status;
        bool is_evaluated_here;    /* this node created it for a DaemonSet of the API server */
        bool is_adopted_elsewhere; /* adopted by another API pod, which its record may not show yet
                                    */
} AdoptionCandidate;

/* 0 or -ENOMEM. */
int adoption_search_check(AdoptionSearch *search, const AdoptionCandidate *candidate);

/* Applies a changed spec of the API pod to the adopted pod. 1: the pod is still adopted; 0: there
 * is no adopted pod, or the change needs a new pod, so the adoption has ended; -ENOMEM. */
int adopted_pod_update(ApiServerPod *pod);

/* Restores the adopted pod of an earlier agent from its record. 0 or -ENOMEM. */
int adopted_pod_restore(PodTable *pods, const Pod *adopted);

/* The entry that has adopted this pod, or NULL; and the UID that this pod has at the API server. */
ApiServerPod *adopted_pod_find_entry(const PodTable *pods, const Pod *local_pod);
const char *adopted_pod_reported_uid(const ApiServerPod *pod, const Pod *local_pod);

/* Rewrites the v1.Event of an adopted pod as an event of the API server's pod. The caller frees it;
 * NULL: the event is not about an adopted pod, or memory is exhausted. */
char *adopted_pod_rename_event(const PodTable *pods, const char *json);
