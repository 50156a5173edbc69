/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pod instance on this node that is reported under a name, and its final status once it is
 * gone. */

#include "agent/kubeclient/object-summary.h"
#include "agent/pods/manager/pod-manager.h"

typedef struct LocalPod {
        char *uid;                 /* of the instance; NULL: there is none */
        char *name;                /* an adopted pod has a separate name */
        char *reported_uid;        /* the UID at the API server */
        bool is_api_pod;           /* the instance, or the last one: not a static pod */
        int64_t deletion_grace;    /* seconds with which it was deleted; -1: it was not */
        bool is_terminated_cached; /* it is in the terminated-pod cache */

        char *final_uid; /* of the last instance; NULL: none is gone */
        Pod *final_pod;  /* with its status; or NULL */
        const PodStatus *final_status;
        char *final_json; /* in their place: from the terminated-pod cache */
} LocalPod;

void local_pod_init(LocalPod *local);
void local_pod_done(LocalPod *local);

/* There is no instance that is reported under this name. */
void local_pod_clear(LocalPod *local);

/* The instance is new, or unchanged. 0 or -ENOMEM. */
int local_pod_set_instance(LocalPod *local, const Pod *pod, const char *reported_uid);

/* The status, valid until the next step of the pod; NULL: there is none. */
const PodStatus *local_pod_status(const LocalPod *local, const PodManager *pod_manager);

/* The API server has these conditions of the pod, which its readiness gates may name. */
void local_pod_set_conditions(const LocalPod *local, const KubeObjectSummary *remote,
                              PodManager *pod_manager);

/* The instance is gone: its status is its final one. */
void local_pod_finish(LocalPod *local, const Pod *pod, const char *reported_uid,
                      PodManager *pod_manager);

/* The instance was gone before this boot; 'json' is its cached v1.Pod, which is taken. 0 or
 * -ENOMEM.
 */
int local_pod_restore_final(LocalPod *local, const char *uid, char *json);

/* Deletes an API pod, and again if the grace period has become shorter. */
void local_pod_delete(LocalPod *local, const char *namespace, int64_t grace,
                      PodManager *pod_manager);
