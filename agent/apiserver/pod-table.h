/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All pods that this node or the API server has, by "namespace/name": the server's objects
 * (remote), the pods that it has bound to this node (bound), the pods that run here (local), and
 * the reports. Each part is owned by the file that declares it. */

#include "agent/apiserver/bound-pod.h"
#include "agent/apiserver/local-pod.h"
#include "agent/apiserver/remote-pod.h"
#include "agent/kubeclient/pod-api-request.h"

/* A status that this node has sent for an object of the server. */
typedef struct SentPodStatus {
        const PodStatus *status; /* owned by the local pod; NULL: the cached one */
        char *uid;               /* of the object; NULL: nothing was sent */
        int64_t generation;      /* of the object's spec */
} SentPodStatus;

/* Owned by pod-status-writer.c. */
typedef struct PodReport {
        char *refused; /* why the server refused the last request; NULL: it was not refused */
        KubePodRequestKind request_kind;
        unsigned n_conflicts;              /* consecutive conflicts when creating a mirror pod */
        unsigned watch_events;             /* watch events of the remote pod when the request was
                                            * made */
        SentPodStatus reported;            /* the last status that the server accepted */
        SentPodStatus sent;                /* in flight */
        char answer_hash[SHA256_HEX_SIZE]; /* of the status in the response */
        uint64_t repeated_at;              /* boot time of the last repetition, after another writer
                                            * had changed the status */
} PodReport;

void sent_pod_status_done(SentPodStatus *sent);

typedef struct ApiServerPod ApiServerPod;
struct ApiServerPod {
        ApiServerPod *next;
        char *key;       /* "namespace/name" */
        char *namespace; /* the two parts of the key */
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

/* Returns the entry, adding it if it is missing; NULL: out of memory. */
ApiServerPod *pod_table_get(PodTable *table, const char *namespace, const char *name);

/* Unlinks and frees the pod at the link. */
void pod_table_remove(ApiServerPod **link);

/* The entry other than 'except' (which may be NULL) that has adopted this pod; NULL: none. */
ApiServerPod *pod_table_find_adopted(const PodTable *table, const Pod *local_pod,
                                     const ApiServerPod *except);
