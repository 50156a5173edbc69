/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A CertificateSigningRequest as the kubelet creates it: an EC key on P-256, O=system:nodes and
 * CN=system:node:<name>, for the signer kubernetes.io/kube-apiserver-client-kubelet; or, with the
 * node's names and addresses, for kubernetes.io/kubelet-serving. */

#include "common/error.h"

/* A new key, PKCS#8 in PEM, to be freed by secret_free(). 0, or -errno with a message. */
int csr_generate_key(char **ret_key, Error *reterr);

/* The names of a serving certificate; at least one of the two members is set. */
typedef struct CsrServer {
        char **names;     /* DNS names */
        char **addresses; /* numeric */
} CsrServer;

/* Creates the object for the key: its name, which is computed from the key and the server, and its
 * JSON. The caller frees both. 'server' is NULL for a client certificate. -EINVAL if the key is
 * invalid. */
int csr_build_object(const char *node_name, const CsrServer *server, const char *key,
                     char **ret_name, char **ret_json, Error *reterr);

typedef enum CsrStatus {
        CSR_PENDING,
        CSR_ISSUED,
        CSR_REFUSED, /* denied, or failed */
} CsrStatus;

/* Reads the status of the server's object. 'ret_text' is the certificate chain in PEM, or the
 * reason for the refusal, or NULL; the caller frees it. */
CsrStatus csr_read_status(const char *json, size_t length, char **ret_text);
