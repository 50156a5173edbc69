/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which request is due for one pod (kubelet: status manager, mirror client): create its mirror pod,
 * patch its status, delete it or its mirror pod, or nothing.
 * A pure function of the local pod and the API server's object; it is called again after every
 * response, so no step has to be remembered. It sends nothing. */

#include "agent/kubeclient/object-summary.h"
#include "agent/model/status.h"

typedef struct KubeLocalPod {
        const Pod *pod;          /* NULL for a rejected pod, and with 'cached' */
        const PodStatus *status; /* NULL: this node has nothing under the name */
        const char *cached;      /* in their place: a v1.Pod with its status, from the disk */
        const char *uid;         /* of the API server's object, or of the static pod */
        bool is_api_pod;         /* else a mirror pod stands for it */
        bool is_outdated;        /* the API pod is not desired any more: it is deleted */
        bool awaits_edit;        /* a container has not started by the edited spec of the pod */
        bool is_terminated;      /* the pod instance is gone; this is its final status */
        bool is_reported;        /* the server's object is known to have this status */
} KubeLocalPod;

typedef enum KubePodRequestKind {
        KUBE_POD_NO_REQUEST,
        KUBE_POD_CREATE_MIRROR, /* POST */
        KUBE_POD_PATCH_STATUS,  /* PATCH */
        KUBE_POD_DELETE,        /* DELETE with grace period 0 and the UID as a precondition */
        KUBE_POD_RETIRE,        /* DELETE with the pod's own grace period, otherwise the same */
        N_KUBE_POD_REQUESTS,
} KubePodRequestKind;

typedef struct KubePodRequest {
        KubePodRequestKind kind;
        char *body;       /* NULL: no request */
        bool is_reported; /* without a request: the server's object has this status already */
} KubePodRequest;

/* 'remote' is NULL if the server does not have an object of the name, 'node_uid' while the Node
 * does not exist there. 0 or -ENOMEM. */
int kube_pod_next_request(const KubeLocalPod *local, const KubeObjectSummary *remote,
                          const char *node_name, const char *node_uid, KubePodRequest *ret);
void kube_pod_request_done(KubePodRequest *request);
