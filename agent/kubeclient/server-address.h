/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where requests go. A server whose certificate has another name than its URL is asked by that
 * name, and connected to by its own. */

#include "common/macros.h"

typedef struct KubeServerAddress {
        char *base;       /* before the path of each request */
        char *connect_to; /* "name:port:host:port", as libcurl takes it; NULL: as in the URL */
        char *host;       /* "Host: 10.0.0.1:6443"; NULL: as in the URL */
} KubeServerAddress;

/* 'server' is a URL without a slash at its end. 0 or -ENOMEM. */
int kube_server_address_init(KubeServerAddress *address, const char *server,
                             const char *tls_server_name);
void kube_server_address_done(KubeServerAddress *address);

/* A path with its query, as it may stand in a request: no blanks, nothing that ends a line. */
bool kube_request_path_is_valid(const char *path);
