/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay kubeconfig`. */

#include "agent/cli/cli.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/words.h"
#include "common/base64.h"
#include "common/buffer.h"
#include "common/cleanup.h"
#include "common/json-text.h"

#include <stdio.h>

/* mainstay kubeconfig: for kubectl on a node that has joined no API server. */

enum {
        KUBECONFIG_PARTS_MAX = 256 * 1024,
};

static int on_kubeconfig_data(const char *data, size_t length, void *userdata) {
        return buffer_append(userdata, data, length, KUBECONFIG_PARTS_MAX);
}

/* "    <member>: <base64>" */
static int print_kubeconfig_data(const char *member, const char *pem) {
        size_t length = strlen(strna(pem));
        cleanup_free char *digits = malloc((length + 2) / 3 * 4 + 1);

        if (!digits)
                return -ENOMEM;
        base64_encode(strna(pem), length, digits);
        printf("    %s: %s\n", member, digits);
        return 0;
}

/* The certificate is always for the node's name, regardless of the server's address. 'server' is
 * its URL; NULL: from the configuration. */
static int print_kubeconfig(const json_t *parts, const char *server) {
        const char *name = strna(json_text(parts, "nodeName"));
        int r;

        printf("apiVersion: v1\nkind: Config\nclusters:\n- name: %s\n  cluster:\n    server: %s\n"
               "    tls-server-name: %s\n",
               name, server ? server : strna(json_text(parts, "server")), name);
        r = print_kubeconfig_data("certificate-authority-data",
                                  json_text(parts, "certificateAuthority"));
        if (r < 0)
                return r;
        printf("users:\n- name: %s\n  user:\n", name);
        r = print_kubeconfig_data("client-certificate-data", json_text(parts, "clientCertificate"));
        if (r < 0)
                return r;
        r = print_kubeconfig_data("client-key-data", json_text(parts, "clientKey"));
        if (r < 0)
                return r;
        printf("contexts:\n- name: %s\n  context:\n    cluster: %s\n    user: %s\n"
               "current-context: %s\n",
               name, name, name, name);
        return 0;
}

int run_kubeconfig(const Options *options) {
        cleanup_with(buffer_erase) Buffer reply = { 0 };
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *parts = NULL;
        int r = client_request(options->socket, "POST", "/kubeconfig", on_kubeconfig_data, &reply,
                               &error);

        if (r < 0)
                return fail_with_error(r, &error);
        parts = json_loads(strna(reply.data), 0, NULL);
        r = parts ? print_kubeconfig(parts, options->server)
                  : error_setf(&error, EBADMSG, "the agent's reply is not JSON");
        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}
