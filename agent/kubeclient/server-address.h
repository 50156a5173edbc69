/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The address to which requests are sent. If the server's certificate has another name than its URL
 * (tls-server-name), that name is requested, and the URL's host is connected. */

#include "common/macros.h"

typedef struct KubeServerAddress {
        char *base;       /* before the path of each request */
        char *connect_to; /* "name:port:host:port", libcurl's CURLOPT_CONNECT_TO; NULL: as in the
                             URL */
        char *host;       /* "Host: 10.0.0.1:6443"; NULL: as in the URL */
} KubeServerAddress;

/* 'server' is a URL without a slash at its end. 0 or -ENOMEM. */
int kube_server_address_init(KubeServerAddress *address, const char *server,
                             const char *tls_server_name);
void kube_server_address_done(KubeServerAddress *address);

/* Whether the text is usable as path and query of a request: no blanks, no line breaks. */
bool kube_request_path_is_valid(const char *path);
