/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which request is needed for one pod (kubelet: status manager, mirror client): create its mirror
 * pod, patch its status, delete it or its mirror pod, or none. A pure function of the local pod and
 * the API server's object; it is called again after every response, so no state has to be
 * remembered. It sends nothing. */

#include "agent/kubeclient/object-summary.h"
#include "agent/model/status.h"

typedef struct KubeLocalPod {
        const Pod *pod;          /* NULL for a rejected pod, and if 'cached' is set */
        const PodStatus *status; /* NULL: this node has nothing with this name */
        const char *cached;      /* instead of them: a v1.Pod with its status, from the disk */
        const char *uid;         /* of the API server's object, or of the static pod */
        bool is_api_pod;         /* otherwise a mirror pod represents it */
        bool is_outdated;        /* the API pod is no longer desired: it is deleted */
        bool awaits_edit;        /* a container has not started with the pod's edited spec yet */
        bool is_terminated;      /* the pod instance is gone; this is its final status */
        bool is_reported;        /* the server's object is known to have this status */
} KubeLocalPod;

typedef enum KubePodRequestKind {
        KUBE_POD_NO_REQUEST,
        KUBE_POD_CREATE_MIRROR, /* POST */
        KUBE_POD_PATCH_STATUS,  /* PATCH */
        KUBE_POD_DELETE,        /* DELETE with grace period 0 and the UID as a precondition */
        KUBE_POD_RETIRE,        /* the same, but with the pod's own grace period */
        N_KUBE_POD_REQUESTS,
} KubePodRequestKind;

typedef struct KubePodRequest {
        KubePodRequestKind kind;
        char *body;       /* NULL: no request */
        bool is_reported; /* no request is needed, because the server's object already has this
                           * status */
} KubePodRequest;

/* 'remote' is NULL if the server has no object with the name, 'node_uid' is NULL if the Node does
 * not exist there. 0 or -ENOMEM. */
int kube_pod_next_request(const KubeLocalPod *local, const KubeObjectSummary *remote,
                          const char *node_name, const char *node_uid, KubePodRequest *ret);
void kube_pod_request_done(KubePodRequest *request);
