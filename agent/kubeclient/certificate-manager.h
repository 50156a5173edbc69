/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Looks after the node's certificate: says when it runs out, and where it is ours to renew, gets
 * the next one in time. It sleeps from one look to the next. */

#include "agent/kubeclient/bootstrap.h"

typedef struct CertificateManager CertificateManager;

typedef struct CertificateManagerSpec {
        sd_event *event;
        const char *node_name;
        const char *directory; /* where PAIR_FILE is ours to renew; NULL: it is not */
        /* Of the certificate, or of its renewal; NULL: there is none any more. */
        void (*on_error)(const char *trouble, void *userdata);
        void *userdata;
} CertificateManagerSpec;

/* Strings are copied. 0 or -errno. */
int certificate_manager_new(const CertificateManagerSpec *spec, CertificateManager **ret);
CertificateManager *certificate_manager_free(CertificateManager *manager);
DEFINE_CLEANUP(CertificateManager *, certificate_manager_free)

/* Whom to ask, and from when to when our certificate is (0: we have none), as it is from now on:
 * after each time that files were read. 0 or -ENOMEM. */
int certificate_manager_set_certificate(CertificateManager *manager, const Kubeconfig *kubeconfig,
                                        uint64_t begins, uint64_t expires);
