/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pod instance on this node that is reported under one name, and its final status once it is
 * gone. */

#include "agent/kubeclient/object-summary.h"
#include "agent/pods/manager/pod-manager.h"

typedef struct LocalPod {
        char *uid;                 /* of the instance; NULL: there is none */
        char *name;                /* an adopted pod has a separate name */
        char *reported_uid;        /* the pod's UID at the API server */
        bool is_api_pod;           /* the current or last instance is not a static pod */
        int64_t deletion_grace;    /* the grace period in seconds of the pod's deletion; -1: it was
                                    * not deleted */
        bool is_terminated_cached; /* the pod is in the terminated-pod cache */

        char *final_uid; /* UID of the last instance that has ended; NULL: none has ended */
        Pod *final_pod;  /* the final pod with its status; or NULL */
        const PodStatus *final_status;
        char *final_json; /* used instead of these, from the terminated-pod cache */
} LocalPod;

void local_pod_init(LocalPod *local);
void local_pod_done(LocalPod *local);

/* No instance is reported under this name any more. */
void local_pod_clear(LocalPod *local);

/* Sets the instance, which may be the same as before. 0 or -ENOMEM. */
int local_pod_set_instance(LocalPod *local, const Pod *pod, const char *reported_uid);

/* The status, valid until the next step of the pod; NULL: there is none. */
const PodStatus *local_pod_status(const LocalPod *local, const PodManager *pod_manager);

/* Sets the conditions that the pod has at the API server, which its readiness gates may name. */
void local_pod_set_conditions(const LocalPod *local, const KubeObjectSummary *remote,
                              PodManager *pod_manager);

/* The instance is gone: its current status becomes the final one. */
void local_pod_finish(LocalPod *local, const Pod *pod, const char *reported_uid,
                      PodManager *pod_manager);

/* The instance was gone before this boot; 'json' is its cached v1.Pod, which is taken. 0 or
 * -ENOMEM.
 */
int local_pod_restore_final(LocalPod *local, const char *uid, char *json);

/* Deletes an API pod; called again if the grace period is shortened. */
void local_pod_delete(LocalPod *local, const char *namespace, int64_t grace,
                      PodManager *pod_manager);
