/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The address of an API server and the identity for it: the resolved current context of a
 * kubeconfig. Plain data; manifest/kubeconfig reads it. Keys and tokens are never shown or logged.
 */

#include "agent/model/schema.h"

typedef struct Kubeconfig {
        char *path;            /* path of the file, for messages */
        char *server;          /* "https://10.0.0.1:6443", without a trailing slash */
        char *tls_server_name; /* NULL: the host of the URL */
        bool insecure;         /* insecure-skip-tls-verify */
        char *authority_file;  /* PEM; all paths are absolute; NULL: none */
        char *authority_data;  /* PEM; the data has precedence over the file */
        char *certificate_file;
        char *certificate_data;
        char *key_file;
        char *key_data;
        char *token; /* the file has precedence over the data */
        char *token_file;
        char *proxy_url; /* NULL: none; the environment is ignored */
        char *namespace; /* "default" */
} Kubeconfig;

void kubeconfig_done(Kubeconfig *kubeconfig);

/* 0; or -ENOMEM, in which case nothing needs to be freed. */
int kubeconfig_copy(const Kubeconfig *from, Kubeconfig *ret);
