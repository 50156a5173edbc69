/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Determines whether an API server belongs to the same cluster as the cache, by the UID of the
 * namespace kube-system if the node may list it, otherwise by address and certificate authority.
 * The cache is used immediately. Until the server has answered, no object is sent to it and none of
 * its objects is used: it may belong to a new cluster with the address and the authority of the
 * previous one. */

#include "agent/apiserver/cache.h"
#include "agent/kubeclient/kube-client.h"
#include "common/macros.h"

typedef struct ClusterIdentity ClusterIdentity;

typedef enum ClusterVerdict {
        CLUSTER_SAME,          /* or there is no evidence of another one */
        CLUSTER_OTHER,         /* its UID is different */
        CLUSTER_PERHAPS_OTHER, /* its UID is not readable, and both address and authority are
                                * different */
} ClusterVerdict;

typedef struct ClusterIdentitySpec {
        sd_event *event;
        ApiServerCache *cache;
        /* The client in use has reached another cluster. Its waiting requests fail afterwards. */
        void (*on_other_cluster)(ClusterVerdict verdict, void *userdata);
        /* Called once after cluster_identity_try(). */
        void (*on_trial_decided)(ClusterVerdict verdict, void *userdata);
        void *userdata;
} ClusterIdentitySpec;

int cluster_identity_new(const ClusterIdentitySpec *spec, ClusterIdentity **ret);
ClusterIdentity *cluster_identity_free(ClusterIdentity *identity);

/* Sets the gate of the client in use. To be called once, before its first request. 0 or -errno. */
int cluster_identity_guard(ClusterIdentity *identity, KubeClient *client,
                           const Kubeconfig *kubeconfig);

/* Whether the address or authority differs from that of the last connection: 1, 0 or -ENOMEM. */
int cluster_identity_is_doubtful(const ClusterIdentity *identity, const Kubeconfig *kubeconfig);

/* Queries the server of another kubeconfig with this client until it responds; the client is
 * borrowed until then. Ends an earlier trial. 0 or -errno. */
int cluster_identity_try(ClusterIdentity *identity, KubeClient *client,
                         const Kubeconfig *kubeconfig);

/* The client in use has switched to the kubeconfig of the trial, which belongs to the same
 * cluster. */
void cluster_identity_accept_trial(ClusterIdentity *identity);

/* The client of the trial is about to be freed. */
void cluster_identity_cancel_trial(ClusterIdentity *identity);

/* Prints the identities for `mainstay debug dump`. */
void cluster_identity_dump(const ClusterIdentity *identity, FILE *out);
