/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A certificate signing request as a kubelet makes it: an EC key on P-256, O=system:nodes and
 * CN=system:node:<name>, for the signer kubernetes.io/kube-apiserver-client-kubelet. */

#include "common/error.h"

/* A new key, PKCS#8 in PEM; freed by secret_free(). 0 or -errno with a sentence. */
int csr_generate_key(char **ret_key, Error *reterr);

/* The object that asks for a certificate for the key: its name, which says which key it is, and its
 * JSON. Both are freed by the caller. -EINVAL where the key is none. */
int csr_build_object(const char *node_name, const char *key, char **ret_name, char **ret_json,
                     Error *reterr);

typedef enum CsrStatus {
        CSR_PENDING,
        CSR_ISSUED,
        CSR_REFUSED, /* denied, or failed */
} CsrStatus;

/* What the object as the server has it says. 'ret_text' is the certificate chain in PEM, or why it
 * was refused, or NULL; freed by the caller. */
CsrStatus csr_read_status(const char *json, size_t length, char **ret_text);
