/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is due to be written about one pod: a pure function of what is here and what is there, asked
 * again after every answer, so that who dies in between just asks again. */

#include "agent/kube/metadata.h"

typedef struct KubePodLocal {
        const char *json; /* v1.Pod with its status; NULL: nothing of that name is here */
        const char *uid;
        bool is_of_api; /* else a mirror shows it */
        bool is_over;   /* its life has ended; this is its last status */
} KubePodLocal;

typedef enum KubePodWriteKind {
        KUBE_POD_NOTHING,
        KUBE_POD_CREATE, /* the mirror: POST */
        KUBE_POD_STATUS, /* PATCH */
        KUBE_POD_DELETE, /* with the UID as a precondition, and at once */
        N_KUBE_POD_WRITES,
} KubePodWriteKind;

typedef struct KubePodWrite {
        KubePodWriteKind kind;
        char *body; /* NULL: nothing */
} KubePodWrite;

/* 'remote' is NULL where the server has none of that name; 'node_uid' while the node is not known
 * there. 0 or -ENOMEM. */
int kube_pod_write(const KubePodLocal *local, const KubeMetadata *remote, const char *node_name,
                   const char *node_uid, KubePodWrite *ret);
/* In place of a local pod: one that this node does not take, and why. The caller frees it; NULL
 * where memory ends. */
char *kube_refused_pod(const char *sentence);

void kube_pod_write_done(KubePodWrite *write);
