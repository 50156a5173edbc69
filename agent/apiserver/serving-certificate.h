/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The certificate that mainstay-api serves with, issued by the API server's signer
 * kubernetes.io/kubelet-serving (kubelet: serverTLSBootstrap). It is kept on disk with its key, and
 * renewed in time, or when it does not contain an address of the node. Until the first request is
 * approved there is none. */

#include "agent/kubeclient/kube-client.h"

#include <stdio.h>
#include <systemd/sd-event.h>

typedef struct ServingCertificate ServingCertificate;

typedef struct ServingCertificateSpec { /* copied, except for the event loop */
        sd_event *event;
        const char *node_name;
        const char *directory;               /* of its file */
        const char *hostname;                /* NULL: none */
        const char *address, *other_address; /* numeric; NULL: none */
} ServingCertificateSpec;

/* Reads the file. 0 or -ENOMEM. */
int serving_certificate_new(const ServingCertificateSpec *spec, ServingCertificate **ret);
ServingCertificate *serving_certificate_free(ServingCertificate *serving);
DEFINE_CLEANUP(ServingCertificate *, serving_certificate_free)

/* The server to request it from, with the node's credentials, each time that they change, and the
 * connection with them, which is borrowed and the same each time. 0 or -ENOMEM. */
int serving_certificate_set_kubeconfig(ServingCertificate *serving, const Kubeconfig *kubeconfig,
                                       KubeClient *client);

/* The certificate and its key in PEM, borrowed; NULL: there is none yet. */
const char *serving_certificate_pair(const ServingCertificate *serving);

/* For `mainstay debug dump`. */
void serving_certificate_dump(const ServingCertificate *serving, FILE *out);
