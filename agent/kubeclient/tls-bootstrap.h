/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* TLS bootstrap (kubelet: --bootstrap-kubeconfig): the first client certificate of this node is
 * requested with the token of the bootstrap kubeconfig, and a kubeconfig with that certificate is
 * written. Later certificates are a rotation: certificate-manager.h. */

#include "agent/kubeclient/certificate-request.h"

typedef struct TlsBootstrapSpec {
        CertificateRequestSpec request;  /* its kubeconfig has the bootstrap token */
        const char *kubeconfig_to_write; /* a path; NULL: none */
} TlsBootstrapSpec;

/* Everything is copied. The request is freed by its caller. 0, or -errno with a message. */
int tls_bootstrap_start(const TlsBootstrapSpec *spec, CertificateRequest **ret, Error *reterr);
