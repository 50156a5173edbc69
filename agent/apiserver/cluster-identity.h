/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether an API server belongs to the cluster of the cache: by the UID of the namespace
 * kube-system, if the node may list it, else by address and certificate authority. The cache is
 * used immediately. Until the server has answered, no object is sent to it and none of its objects
 * is used: it may belong to a new cluster that was created with the address and the authority of
 * the previous one. */

#include "agent/apiserver/cache.h"
#include "agent/kubeclient/kube-client.h"
#include "common/macros.h"

typedef struct ClusterIdentity ClusterIdentity;

typedef enum ClusterVerdict {
        CLUSTER_SAME,          /* or nothing speaks against it */
        CLUSTER_OTHER,         /* its UID is another one */
        CLUSTER_PERHAPS_OTHER, /* it shows no UID, and both address and authority are others */
} ClusterVerdict;

typedef struct ClusterIdentitySpec {
        sd_event *event;
        ApiServerCache *cache;
        /* The client in use has reached another cluster. Its requests that wait fail afterwards. */
        void (*on_other_cluster)(ClusterVerdict verdict, void *userdata);
        /* Once after cluster_identity_try(). */
        void (*on_trial_decided)(ClusterVerdict verdict, void *userdata);
        void *userdata;
} ClusterIdentitySpec;

int cluster_identity_new(const ClusterIdentitySpec *spec, ClusterIdentity **ret);
ClusterIdentity *cluster_identity_free(ClusterIdentity *identity);

/* To be called once, before the first request of the client in use: sets its gate. 0 or -errno. */
int cluster_identity_guard(ClusterIdentity *identity, KubeClient *client,
                           const Kubeconfig *kubeconfig);

/* Its address or its authority are not those of the last one: 1, 0 or -ENOMEM. */
int cluster_identity_is_doubtful(const ClusterIdentity *identity, const Kubeconfig *kubeconfig);

/* Queries the server of another kubeconfig with this client until it responds; the client is
 * borrowed until then. Ends an earlier trial. 0 or -errno. */
int cluster_identity_try(ClusterIdentity *identity, KubeClient *client,
                         const Kubeconfig *kubeconfig);

/* The client in use has changed to the kubeconfig of the trial, which is of the same cluster. */
void cluster_identity_accept_trial(ClusterIdentity *identity);

/* The client of the trial is about to go. */
void cluster_identity_cancel_trial(ClusterIdentity *identity);

/* Prints them for `mainstay debug dump`. */
void cluster_identity_dump(const ClusterIdentity *identity, FILE *out);
