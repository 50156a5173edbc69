/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Certificate rotation (kubelet: rotateCertificates, certificate manager): watches the expiry of
 * the node's client or serving certificate, and requests its successor in time, if it was issued to
 * this agent. A serving certificate is also requested if there is none. It sleeps between the
 * checks; certificate-expiry.h computes when. */

#include "agent/kubeclient/certificate-request.h"

#include <stdio.h>

typedef struct CertificateManager CertificateManager;

typedef struct CertificateManagerSpec {
        sd_event *event;
        const char *node_name;
        const char *directory;   /* if PAIR_FILE is rotated; NULL: it is not ours */
        const CsrServer *server; /* SERVER_PAIR_FILE is, for these names, which are borrowed */
        KubeClient *client;      /* borrowed: the connection with the kubeconfig; NULL: its own */
        /* The error of the certificate or its rotation; NULL: there is none. */
        void (*on_error)(const char *error, void *userdata);
        /* The certificate has expired and nothing holds requests back, so that it cannot request
         * its successor; after each check. NULL: nothing else can. */
        void (*on_expired)(void *userdata);
        /* The successor is in its file; NULL: the owner watches that. */
        void (*on_rotated)(void *userdata);
        void *userdata;
} CertificateManagerSpec;

/* Strings are copied. 0 or -errno. */
int certificate_manager_new(const CertificateManagerSpec *spec, CertificateManager **ret);
CertificateManager *certificate_manager_free(CertificateManager *manager);
DEFINE_CLEANUP(CertificateManager *, certificate_manager_free)

/* The server and the validity of the certificate in use (0: there is none), after each time that
 * the files were read. A certificate that the kubeconfig itself contains is rotated immediately,
 * because it has no file. A request for a serving certificate continues with the kubeconfig's
 * credentials. 0 or -ENOMEM. */
int certificate_manager_set_certificate(CertificateManager *manager, const Kubeconfig *kubeconfig,
                                        uint64_t not_before, uint64_t not_after);

/* Something else than the manager has requested the certificate that is set next. If that is due
 * for rotation immediately, requests are held back, like after those of the manager itself. */
void certificate_manager_note_issued(CertificateManager *manager);

/* Prints the rotation of the certificate for `mainstay debug dump`. */
void certificate_manager_dump(const CertificateManager *manager, FILE *out);
