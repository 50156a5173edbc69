/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All pods that this node and the API server have, by "namespace/name": the server's objects
 * (remote), the pods that it has bound to this node (bound), the pods that run here (local), and
 * the reports. Each part is owned by the file that declares it. */

#include "agent/apiserver/bound-pod.h"
#include "agent/apiserver/local-pod.h"
#include "agent/apiserver/remote-pod.h"
#include "agent/kubeclient/pod-api-request.h"

/* A status of ours for an object of the server. */
typedef struct SentPodStatus {
        const PodStatus *status; /* which it owns; NULL: the cached one */
        char *uid;               /* of the object; NULL: nothing was sent */
        int64_t generation;      /* of the object's spec */
} SentPodStatus;

/* Owned by pod-status-writer.c. */
typedef struct PodReport {
        char *refused; /* why the server refused the last request; NULL: it did not */
        KubePodRequestKind request_kind;
        unsigned n_conflicts;              /* in a row, of the creation of a mirror pod */
        unsigned watch_events;             /* of the remote pod, when the request was made */
        SentPodStatus reported;            /* the last one that the server took */
        SentPodStatus sent;                /* in flight */
        char answer_hash[SHA256_HEX_SIZE]; /* of the status in the answer */
        uint64_t repeated_at;              /* boot time, when others had changed the status */
} PodReport;

void sent_pod_status_done(SentPodStatus *sent);

typedef struct ApiServerPod ApiServerPod;
struct ApiServerPod {
        ApiServerPod *next;
        char *key;       /* "namespace/name" */
        char *namespace; /* its two parts */
        const char *name;
        RemotePod remote;
        BoundPod bound;
        LocalPod local;
        PodReport report;
};

typedef struct PodTable {
        ApiServerPod *first; /* sorted by key */
} PodTable;

void pod_table_done(PodTable *table);

ApiServerPod *pod_table_find(const PodTable *table, const char *key);

/* Adds it if it is missing; NULL on out of memory. */
ApiServerPod *pod_table_get(PodTable *table, const char *namespace, const char *name);

/* Unlinks and frees the pod at the link. */
void pod_table_remove(ApiServerPod **link);

/* The entry that has adopted this pod, other than 'except' (or NULL); NULL: none. */
ApiServerPod *pod_table_find_adopted(const PodTable *table, const Pod *local_pod,
                                     const ApiServerPod *except);
