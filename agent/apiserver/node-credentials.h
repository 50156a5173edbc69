/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The node's credentials for the API server: the kubeconfig and its files, which are watched; the
 * TLS bootstrap, if there is no kubeconfig yet; and the client certificate, which is rotated if it
 * was issued to this agent (kubelet: certificate manager). */

#include "agent/apiserver/connection-status.h"
#include "agent/model/kubeconfig.h"
#include "common/error.h"

#include <stdio.h>

typedef struct ApiServerCredentials ApiServerCredentials;

/* Borrowed. */
typedef struct ApiServerCredentialsSpec {
        sd_event *event;
        const char *kubeconfig;           /* a file, which may not exist yet */
        const char *bootstrap_kubeconfig; /* NULL: none */
        const char *node_name;
        const char *state_dir;
        const char *certificate_dir; /* NULL: "<state>/pki" */
        bool rotates_embedded; /* a certificate that is embedded in the kubeconfig is replaced at
                                  once by a renewed one */
        bool has_serving_certificate; /* a serving certificate for these addresses is requested */
        const char *hostname, *address, *other_address;
        ConnectionStatus *connection;
        /* Connects with the kubeconfig, or changes the credentials of the connection. */
        int (*use_kubeconfig)(const Kubeconfig *kubeconfig, void *userdata, Error *reterr);
        /* The state of that connection; NULL while there is none. */
        KubeClient *(*get_client)(void *userdata);
        void *userdata;
} ApiServerCredentialsSpec;

int apiserver_credentials_new(const ApiServerCredentialsSpec *spec, ApiServerCredentials **ret);
ApiServerCredentials *apiserver_credentials_free(ApiServerCredentials *credentials);
DEFINE_CLEANUP(ApiServerCredentials *, apiserver_credentials_free)

/* Reads the kubeconfig when the loop is idle, or a second later: loading libcurl takes
 * milliseconds, and pods start first. */
void apiserver_credentials_start(ApiServerCredentials *credentials);

/* Pods have started: the kubeconfig is read when the loop is idle. */
void apiserver_credentials_start_now(ApiServerCredentials *credentials);

/* The kubeconfig or one of its files may have changed. */
void apiserver_credentials_reload(ApiServerCredentials *credentials);

/* The certificate to serve with and its key in PEM, borrowed; NULL: none was issued. */
const char *apiserver_credentials_serving_pair(const ApiServerCredentials *credentials);

/* Prints the kubeconfig in use and the certificate for `mainstay debug dump`. */
void apiserver_credentials_dump(const ApiServerCredentials *credentials, FILE *out);
