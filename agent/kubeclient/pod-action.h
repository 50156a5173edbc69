/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is due to be written about one pod: a pure function of what is here and what is there, asked
 * again after every answer, so that who dies in between just asks again. */

#include "agent/kubeclient/object-summary.h"

typedef struct KubeLocalPod {
        const char *json; /* v1.Pod with its status; NULL: nothing of that name is here */
        const char *uid;
        bool is_api_pod;    /* else a mirror shows it */
        bool is_terminated; /* its life has ended; this is its last status */
} KubeLocalPod;

typedef enum KubePodActionKind {
        KUBE_POD_NO_ACTION,
        KUBE_POD_CREATE_MIRROR, /* the mirror: POST */
        KUBE_POD_PATCH_STATUS,  /* PATCH */
        KUBE_POD_DELETE,        /* with the UID as a precondition, and at once */
        N_KUBE_POD_ACTIONS,
} KubePodActionKind;

typedef struct KubePodAction {
        KubePodActionKind kind;
        char *body; /* NULL: nothing */
} KubePodAction;

/* 'remote' is NULL where the server has none of that name; 'node_uid' while the node is not known
 * there. 0 or -ENOMEM. */
int kube_pod_next_action(const KubeLocalPod *local, const KubeObjectSummary *remote,
                         const char *node_name, const char *node_uid, KubePodAction *ret);
/* In place of a local pod: one that this node does not take, and why. The caller frees it; NULL
 * where memory ends. */
char *kube_rejected_pod_to_json(const char *sentence);

void kube_pod_action_done(KubePodAction *action);
