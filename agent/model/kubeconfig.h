/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How an API server is reached and who we are to it: the current context of a kubeconfig, worked
 * out. Plain data; manifest/kubeconfig reads it. Keys and tokens are never shown or logged. */

#include "agent/model/schema.h"

typedef struct Kubeconfig {
        char *path;            /* of the file, for sentences */
        char *server;          /* "https://10.0.0.1:6443", without a slash at its end */
        char *tls_server_name; /* NULL: as in the URL */
        bool insecure;         /* insecure-skip-tls-verify */
        char *authority_file;  /* PEM; absolute, as all paths here; NULL: none */
        char *authority_data;  /* PEM; before the file, as all data here */
        char *certificate_file;
        char *certificate_data;
        char *key_file;
        char *key_data;
        char *token; /* after the file */
        char *token_file;
        char *proxy_url; /* NULL: none, whatever the environment says */
        char *namespace; /* "default" */
} Kubeconfig;

void kubeconfig_done(Kubeconfig *kubeconfig);

/* 0 or -ENOMEM, and then nothing is held. */
int kubeconfig_copy(const Kubeconfig *from, Kubeconfig *ret);
