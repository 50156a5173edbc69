/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The address to which requests are sent. If the server's certificate has another name than its URL
 * (tls-server-name), that name is used in the URL, and the connection goes to the original host. */

#include "common/macros.h"

typedef struct KubeServerAddress {
        char *base;       /* prefix of the path of each request */
        char *connect_to; /* "name:port:host:port", libcurl's CURLOPT_CONNECT_TO; NULL: as in the
                             URL */
        char *host;       /* "Host: 10.0.0.1:6443"; NULL: as in the URL */
} KubeServerAddress;

/* 'server' is a URL without a trailing slash. 0 or -ENOMEM. */
int kube_server_address_init(KubeServerAddress *address, const char *server,
                             const char *tls_server_name);
void kube_server_address_done(KubeServerAddress *address);

/* Whether the text is valid as path and query of a request: no blanks, no line breaks. */
bool kube_request_path_is_valid(const char *path);
