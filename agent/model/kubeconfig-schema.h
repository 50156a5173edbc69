/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of a kubeconfig as they are in the file (clientcmd/v1), before they are resolved:
 * base64 is still encoded, paths may be relative. */

#include "agent/model/schema.h"

typedef struct KubeconfigCluster {
        char *server;
        char *tls_server_name;
        bool insecure;
        char *authority;
        char *authority_data;
        char *proxy_url;
} KubeconfigCluster;

typedef struct KubeconfigUser {
        char *certificate;
        char *certificate_data;
        char *key;
        char *key_data;
        char *token;
        char *token_file;
} KubeconfigUser;

typedef struct KubeconfigContext {
        char *cluster;
        char *user;
        char *namespace;
} KubeconfigContext;

/* The document. Its lists are searched by name, because only the referenced entries are read. */
typedef struct KubeconfigDocument {
        char *current_context;
} KubeconfigDocument;

extern const Schema kubeconfig_document_schema;
extern const Schema kubeconfig_context_schema;
extern const Schema kubeconfig_cluster_schema;
extern const Schema kubeconfig_user_schema;
