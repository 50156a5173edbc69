/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* TLS bootstrap (kubelet: --bootstrap-kubeconfig): requests the first client certificate of this
 * node with the token in the bootstrap kubeconfig, and writes a kubeconfig with that certificate.
 * Rotation (certificate-manager.h) obtains all later certificates. */

#include "agent/kubeclient/certificate-request.h"

typedef struct TlsBootstrapSpec {
        CertificateRequestSpec request;  /* its kubeconfig contains the bootstrap token */
        const char *kubeconfig_to_write; /* a path; NULL: none */
} TlsBootstrapSpec;

/* Everything is copied. The caller frees the request. 0, or -errno with a message. */
int tls_bootstrap_start(const TlsBootstrapSpec *spec, CertificateRequest **ret, Error *reterr);
