/* SPDX-License-Identifier: Apache-2.0 */
/* Formats the kubeconfig that TLS bootstrap writes, and requests the certificate. */

#include "agent/kubeclient/tls-bootstrap.h"

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"

#include <jansson.h>

static int set_json_text(json_t *object, const char *key, const char *value) {
        return value ? json_object_set_new(object, key, json_string(value)) : 0;
}

static int set_base64_data(json_t *object, const char *key, const char *value) {
        size_t length = strlen(strna(value));
        cleanup_free char *base64 = malloc((length + 2) / 3 * 4 + 1);

        if (!base64)
                return -1;
        base64_encode(strna(value), length, base64);
        return set_json_text(object, key, value ? base64 : NULL);
}

static json_t *build_kubeconfig_cluster(const Kubeconfig *from) {
        json_t *cluster = json_object();

        if (cluster && set_json_text(cluster, "server", from->server) == 0 &&
            set_json_text(cluster, "tls-server-name", from->tls_server_name) == 0 &&
            set_json_text(cluster, "proxy-url", from->proxy_url) == 0 &&
            set_json_text(cluster, "certificate-authority",
                          from->authority_data ? NULL : from->authority_file) == 0 &&
            set_base64_data(cluster, "certificate-authority-data", from->authority_data) == 0 &&
            (!from->insecure ||
             json_object_set_new(cluster, "insecure-skip-tls-verify", json_true()) == 0))
                return cluster;
        json_decref(cluster);
        return NULL;
}

static char *kubeconfig_for_pair(const Kubeconfig *from, const char *pair_path) {
        json_t *root =
                json_pack("{s:s, s:s, s:s, s:[{s:s, s:o}], s:[{s:s, s:{s:s, s:s}}], "
                          "s:[{s:s, s:{s:s, s:s, s:s}}]}",
                          "apiVersion", "v1", "kind", "Config", "current-context", "default",
                          "clusters", "name", "default", "cluster", build_kubeconfig_cluster(from),
                          "users", "name", "default", "user", "client-certificate", pair_path,
                          "client-key", pair_path, "contexts", "name", "default", "context",
                          "cluster", "default", "user", "default", "namespace", from->namespace);
        char *text = root ? json_to_text(root, JSON_INDENT(2)) : NULL;

        json_decref(root);
        return text;
}

int tls_bootstrap_start(const TlsBootstrapSpec *spec, CertificateRequest **ret, Error *reterr) {
        cleanup_free char *pair = path_join(spec->request.directory, PAIR_FILE);
        cleanup_free char *text = pair ? kubeconfig_for_pair(spec->request.kubeconfig, pair) : NULL;
        CertificateRequestSpec request = spec->request;

        if (!text)
                return -ENOMEM;
        request.referring_path = spec->kubeconfig_to_write;
        request.referring_text = text;
        return certificate_request_new(&request, ret, reterr);
}
