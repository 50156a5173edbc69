/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* TLS bootstrap and certificate rotation, as in the kubelet: creates a key and a
 * CertificateSigningRequest, waits for its approval, and tries the new pair before it replaces the
 * old one. The first request uses a bootstrap token, each later one the current certificate. The
 * key is on disk, so a restarted agent continues with it. */

#include "agent/kubeclient/client.h"

#define PAIR_FILE "kubelet-client-current.pem" /* the certificate, then its key */

typedef struct KubeBootstrap KubeBootstrap;

typedef struct KubeBootstrapSpec {
        sd_event *event;
        const Kubeconfig *kubeconfig; /* the server, and the credentials for the request */
        const char *node_name;
        const char *directory;        /* of the pair: "<state>/pki" */
        const char *write_kubeconfig; /* the path of a kubeconfig to write for the new pair; NULL:
                                         none */

        /* What it waits for, or why it retries; NULL: neither. */
        void (*on_error)(const char *error, void *userdata);
        /* Once: the pair was used with success, and is in its file. */
        void (*on_done)(void *userdata);
        void *userdata;
} KubeBootstrapSpec;

/* All of it is copied. 0, or -errno with a message. */
int kube_bootstrap_new(const KubeBootstrapSpec *spec, KubeBootstrap **ret, Error *reterr);

/* May be called from within its callbacks. */
KubeBootstrap *kube_bootstrap_free(KubeBootstrap *bootstrap);
DEFINE_CLEANUP(KubeBootstrap *, kube_bootstrap_free)

/* The text of a kubeconfig that is 'from' with the pair of the file as its credentials. The caller
 * frees it; NULL on out of memory. */
char *kubeconfig_for_pair(const Kubeconfig *from, const char *pair_path);
