/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where requests go. A server whose certificate has another name than its URL is asked by that
 * name, and connected to by its own. */

#include "common/macros.h"

typedef struct KubeAddress {
        char *base;       /* before the path of each request */
        char *connect_to; /* "name:port:host:port", as libcurl takes it; NULL: as in the URL */
        char *host;       /* "Host: 10.0.0.1:6443"; NULL: as in the URL */
} KubeAddress;

/* 'server' is a URL without a slash at its end. 0 or -ENOMEM. */
int kube_address_init(KubeAddress *address, const char *server, const char *tls_server_name);
void kube_address_done(KubeAddress *address);

/* A path with its query, as it may stand in a request: no blanks, nothing that ends a line. */
bool kube_path_is_valid(const char *path);
