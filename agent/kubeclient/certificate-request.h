/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Obtains a certificate for this node (kubelet: pkg/kubelet/certificate): creates a key and a
 * CertificateSigningRequest (csr.h), waits for its approval, and tries the new pair before it
 * replaces the old one. The certificate is a client certificate or the serving certificate for port
 * 10250. TLS bootstrap requests the first one (tls-bootstrap.h); rotation requests each later one,
 * authenticated with the current one (certificate-manager.h). The key is on disk, so that a
 * restarted agent can continue with it. */

#include "agent/kubeclient/csr.h"
#include "agent/kubeclient/kube-client.h"

/* The certificate, then its key. */
#define PAIR_FILE        "kubelet-client-current.pem"
#define SERVER_PAIR_FILE "kubelet-server-current.pem"

typedef struct CertificateRequest CertificateRequest;

typedef struct CertificateRequestSpec {
        sd_event *event;
        const Kubeconfig *kubeconfig; /* server and credentials for the request */
        /* A connection with these credentials, borrowed, which reports when the server is reachable
         * again; NULL: a separate connection, which polls more often. */
        KubeClient *client;
        const char *node_name;
        const char *directory;   /* directory of the pair: "<state>/pki" */
        const CsrServer *server; /* the names of a serving certificate; NULL: a client
                                  * certificate */
        /* A file that refers to the pair, and its text, to be written once the pair is installed;
         * NULL: none. */
        const char *referring_path, *referring_text;

        /* The reason why it waits or retries; NULL: neither. */
        void (*on_error)(const char *error, void *userdata);
        /* Called once: the pair was used successfully (a serving certificate: its key matches), and
         * is in its file.
         */
        void (*on_done)(void *userdata);
        void *userdata;
} CertificateRequestSpec;

/* Everything except the client is copied. 0, or -errno with a message. */
int certificate_request_new(const CertificateRequestSpec *spec, CertificateRequest **ret,
                            Error *reterr);

/* May be called from its own callbacks. */
CertificateRequest *certificate_request_free(CertificateRequest *c);
DEFINE_CLEANUP(CertificateRequest *, certificate_request_free)
