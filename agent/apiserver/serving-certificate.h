/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The certificate that mainstay-api serves with, issued by the API server's signer
 * kubernetes.io/kubelet-serving (kubelet: serverTLSBootstrap). It is stored on disk with its key,
 * and renewed before it expires, or when the node has an address that it does not contain. There is
 * none until the first request is approved. */

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

/* Sets the server from which the certificate is requested, and the node's credentials; called each
 * time they change. The connection that uses them is borrowed and is always the same. 0 or -ENOMEM.
 */
int serving_certificate_set_kubeconfig(ServingCertificate *serving, const Kubeconfig *kubeconfig,
                                       KubeClient *client);

/* The certificate and its key in PEM, borrowed; NULL: there is none yet. */
const char *serving_certificate_pair(const ServingCertificate *serving);

/* For `mainstay debug dump`. */
void serving_certificate_dump(const ServingCertificate *serving, FILE *out);
