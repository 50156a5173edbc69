/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Certificate rotation (kubelet: rotateCertificates, certificate manager): watches the expiry of
 * the node's client or serving certificate and, if it was issued to this agent, requests its
 * successor in time. A serving certificate is also requested if there is none. certificate-expiry.h
 * computes the time of the next check. */

#include "agent/kubeclient/certificate-request.h"

#include <stdio.h>

typedef struct CertificateManager CertificateManager;

typedef struct CertificateManagerSpec {
        sd_event *event;
        const char *node_name;
        const char *directory;   /* if PAIR_FILE is to be rotated; NULL: it does not belong to the
                                  * agent */
        const CsrServer *server; /* if SERVER_PAIR_FILE is, with these names, which are borrowed */
        KubeClient *client;      /* borrowed: the connection with the kubeconfig; NULL: a separate
                                  * one */
        /* The error of the certificate or of its rotation; NULL: none. */
        void (*on_error)(const char *error, void *userdata);
        /* Called after each check if the certificate has expired and requests are not being
         * delayed, so that it cannot be used to request its successor. NULL: no other way exists.
         */
        void (*on_expired)(void *userdata);
        /* The successor has been written to its file; NULL: the owner watches the file. */
        void (*on_rotated)(void *userdata);
        void *userdata;
} CertificateManagerSpec;

/* Strings are copied. 0 or -errno. */
int certificate_manager_new(const CertificateManagerSpec *spec, CertificateManager **ret);
CertificateManager *certificate_manager_free(CertificateManager *manager);
DEFINE_CLEANUP(CertificateManager *, certificate_manager_free)

/* Sets the server, and the validity of the certificate in use (0: there is none); called each time
 * the files have been read. A certificate embedded in the kubeconfig is rotated immediately,
 * because it has no file. A request for a serving certificate continues with the kubeconfig's
 * credentials. 0 or -ENOMEM. */
int certificate_manager_set_certificate(CertificateManager *manager, const Kubeconfig *kubeconfig,
                                        uint64_t not_before, uint64_t not_after);

/* The next certificate that is set was not requested by this manager. If it is due for rotation
 * immediately, requests are delayed, as after the manager's own requests. */
void certificate_manager_note_issued(CertificateManager *manager);

/* Prints the rotation of the certificate for `mainstay debug dump`. */
void certificate_manager_dump(const CertificateManager *manager, FILE *out);
