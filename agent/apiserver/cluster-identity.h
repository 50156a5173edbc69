/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether an API server belongs to the cluster of the cache: by the UID of the namespace
 * kube-system, if the node may list it. The UID is learned once, and compared again only if the
 * kubeconfig has another address or another certificate authority than the last one: a node must
 * use its cache at once while the server cannot be reached. */

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
        /* Once after cluster_identity_ask() has given 0. */
        void (*on_decided)(ClusterVerdict verdict, void *userdata);
        void *userdata;
} ClusterIdentitySpec;

int cluster_identity_new(const ClusterIdentitySpec *spec, ClusterIdentity **ret);
ClusterIdentity *cluster_identity_free(ClusterIdentity *identity);

/* Its address or its authority are not those of the last one: 1, 0 or -ENOMEM. */
int cluster_identity_is_doubtful(const ClusterIdentity *identity, const Kubeconfig *kubeconfig);

/* 1: the server of this kubeconfig may be used immediately, and its UID is learned in the
 * background. 0: its server is queried by this client, which is borrowed until it is decided, for
 * as long as there is no response. -ENOMEM. An earlier question is given up. */
int cluster_identity_ask(ClusterIdentity *identity, KubeClient *client,
                         const Kubeconfig *kubeconfig);

/* The cluster that was decided about last is the one of the cache from now on. */
void cluster_identity_accept(ClusterIdentity *identity);

/* Prints them for `mainstay debug dump`. */
void cluster_identity_dump(const ClusterIdentity *identity, FILE *out);

/* The borrowed client is about to go. */
void cluster_identity_cancel(ClusterIdentity *identity);
