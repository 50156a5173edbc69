/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Gets the node a certificate of its own, as a kubelet does: a key, a certificate signing request,
 * the wait for whoever approves it, and the new pair tried before it replaces what was there. Used
 * for the first one, asked for with a bootstrap token, and for each that follows, asked for with
 * the one before. What is on disk lets an agent that starts anew go on with the same key. */

#include "agent/kubeclient/client.h"

#define PAIR_FILE "kubelet-client-current.pem" /* the certificate, then its key */

typedef struct KubeBootstrap KubeBootstrap;

typedef struct KubeBootstrapSpec {
        sd_event *event;
        const Kubeconfig *kubeconfig; /* whom we ask, and as whom */
        const char *node_name;
        const char *directory;        /* of the pair, "<state>/pki" */
        const char *write_kubeconfig; /* a path: one for the new pair; NULL: none */

        /* What it waits for, or why it tries again; NULL: neither. */
        void (*on_error)(const char *trouble, void *userdata);
        /* Once: the pair has been used with success, and is in its file. */
        void (*on_done)(void *userdata);
        void *userdata;
} KubeBootstrapSpec;

/* All of it is copied. 0 or -errno with a sentence. */
int kube_bootstrap_new(const KubeBootstrapSpec *spec, KubeBootstrap **ret, Error *reterr);

/* May be called from within its callbacks. */
KubeBootstrap *kube_bootstrap_free(KubeBootstrap *bootstrap);
DEFINE_CLEANUP(KubeBootstrap *, kube_bootstrap_free)

/* The text of a kubeconfig that is like 'from' but for who we are: the pair in the file. Freed by
 * the caller; NULL where memory ends. */
char *kubeconfig_for_pair(const Kubeconfig *from, const char *pair_path);
