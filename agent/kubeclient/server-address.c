/* SPDX-License-Identifier: Apache-2.0 */
/* Splits the server URL in a kubeconfig. */

#include "agent/kubeclient/server-address.h"

#include "common/cleanup.h"
#include "common/text.h"

/* The parts of "https://[::1]:6443/prefix": host, port and path. */
typedef struct ServerUrlParts {
        const char *host;
        size_t host_length;
        const char *port; /* "443" if it is not given */
        size_t port_length;
        const char *rest;
} ServerUrlParts;

static ServerUrlParts split_server_url(const char *server) {
        const char *authority = strstr(server, "://");
        const char *host = authority ? authority + 3 : server;
        const char *rest = host + strcspn(host, "/"), *colon;
        size_t skip = host[0] == '[' ? strcspn(host, "]") : 0;
        ServerUrlParts parts = { .host = host, .rest = rest };

        colon = memchr(host + skip, ':', (size_t) (rest - host) - skip);
        parts.host_length = (size_t) ((colon ? colon : rest) - host);
        parts.port = colon ? colon + 1 : strncmp(server, "http:", 5) == 0 ? "80" : "443";
        parts.port_length = colon ? (size_t) (rest - colon - 1) : strlen(parts.port);
        return parts;
}

int kube_server_address_init(KubeServerAddress *address, const char *server,
                             const char *tls_server_name) {
        ServerUrlParts parts = split_server_url(server);
        bool is_v6 = tls_server_name && strchr(tls_server_name, ':');
        const char *open = is_v6 ? "[" : "", *close = is_v6 ? "]" : "";

        *address = (KubeServerAddress){ 0 };
        if (!tls_server_name) {
                address->base = strdup(server);
                return address->base ? 0 : -ENOMEM;
        }
        address->base = text_format("%.*s%s%s%s:%.*s%s", (int) (parts.host - server), server, open,
                                    tls_server_name, close, (int) parts.port_length, parts.port,
                                    parts.rest);
        address->connect_to =
                text_format("%s%s%s:%.*s:%.*s:%.*s", open, tls_server_name, close,
                            (int) parts.port_length, parts.port, (int) parts.host_length,
                            parts.host, (int) parts.port_length, parts.port);
        address->host = text_format("Host: %.*s", (int) (parts.rest - parts.host), parts.host);
        if (address->base && address->connect_to && address->host)
                return 0;
        kube_server_address_done(address);
        return -ENOMEM;
}

void kube_server_address_done(KubeServerAddress *address) {
        free(address->base);
        free(address->connect_to);
        free(address->host);
        *address = (KubeServerAddress){ 0 };
}

bool kube_request_path_is_valid(const char *path) {
        for (const char *c = path; *c; c++)
                if (*c <= ' ' || *c >= 0x7f || *c == '#')
                        return false;
        return path[0] == '/';
}
