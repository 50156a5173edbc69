/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Watches the expiry of the node's client certificate and rotates it, where it was issued to this
 * agent (kubelet: certificate manager). It sleeps between the checks. */

#include "agent/kubeclient/bootstrap.h"

#include <stdio.h>

typedef struct CertificateManager CertificateManager;

typedef struct CertificateManagerSpec {
        sd_event *event;
        const char *node_name;
        const char *directory; /* where PAIR_FILE is rotated; NULL: it is not ours */
        /* Of the certificate or its rotation; NULL: there is no error. */
        void (*on_error)(const char *error, void *userdata);
        void *userdata;
} CertificateManagerSpec;

/* Strings are copied. 0 or -errno. */
int certificate_manager_new(const CertificateManagerSpec *spec, CertificateManager **ret);
CertificateManager *certificate_manager_free(CertificateManager *manager);
DEFINE_CLEANUP(CertificateManager *, certificate_manager_free)

/* The server and the validity of the certificate in use (0: there is none), after each time that
 * the files were read. 0 or -ENOMEM. */
int certificate_manager_set_certificate(CertificateManager *manager, const Kubeconfig *kubeconfig,
                                        uint64_t begins, uint64_t expires);

/* Prints the rotation of the certificate for `mainstay debug dump`. */
void certificate_manager_dump(const CertificateManager *manager, FILE *out);
