/* SPDX-License-Identifier: Apache-2.0 */

/* A node that has joined no API server: its certificate authority, the certificate that
 * mainstay-api serves with, and kubeconfigs. */

#include "agent/node/lone-node.h"

#include "agent/kubeclient/tls-config.h"
#include "agent/node/node-authority.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/durable-write.h"
#include "common/file.h"
#include "common/forked-task.h"
#include "common/json-text.h"
#include "common/log.h"
#include "common/text.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>

#define AUTHORITY_FILE "node-authority.pem"
#define DAY_USEC       (UINT64_C(86400) * USEC_PER_SEC)

enum {
        AUTHORITY_BYTES_MAX = 64 * 1024,
        SERVING_DAYS = 365,
        SERVING_RENEW_DAYS = 300,
        KUBECONFIG_DAYS = 365,
};

struct LoneNode {
        LoneNodeSpec spec;
        NodeAuthority *authority;     /* NULL: it was not needed yet */
        ForkedTask *write;            /* the task that writes its file */
        char *certificate, *key;      /* PEM; used by mainstay-api */
        uint64_t issued_at, renew_at; /* realtime */
};

int lone_node_new(const LoneNodeSpec *spec, LoneNode **ret) {
        LoneNode *lone = calloc(1, sizeof(*lone));

        if (!lone)
                return -ENOMEM;
        lone->spec = *spec;
        *ret = lone;
        return 0;
}

LoneNode *lone_node_free(LoneNode *lone) {
        if (!lone)
                return NULL;
        forked_task_free(lone->write);
        node_authority_free(lone->authority);
        free(lone->certificate);
        secret_free(lone->key);
        free(lone);
        return NULL;
}

/* ---- the authority ---- */

static void on_authority_written(int r, void *userdata) {
        LoneNode *lone = userdata;

        lone->write = NULL;
        if (r < 0)
                log_warning("Cannot write %s/pki/" AUTHORITY_FILE
                            ": %s; kubeconfigs are valid until the agent restarts",
                            lone->spec.state_dir, strerror(-r));
}

static int write_authority(LoneNode *lone) {
        cleanup_free char *directory = path_join(lone->spec.state_dir, "pki");
        cleanup_with(secret_freep) char *text = node_authority_format(lone->authority);

        if (!directory || !text)
                return -ENOMEM;
        return durable_write_start(lone->spec.event, directory,
                                   &(DurableFile){ AUTHORITY_FILE, text, 0600 }, 1,
                                   on_authority_written, lone, &lone->write);
}

/* 0; -ENOENT: none; another -errno with a message. */
static int read_authority(LoneNode *lone, Error *reterr) {
        cleanup_free char *path = path_join(lone->spec.state_dir, "pki/" AUTHORITY_FILE);
        char *text = NULL;
        size_t length;
        int r = path ? read_file_at(AT_FDCWD, path, AUTHORITY_BYTES_MAX, &text, &length) : -ENOMEM;

        if (r >= 0)
                r = node_authority_parse(text, now_realtime_usec(), &lone->authority, reterr);
        secret_free(text);
        return r < 0 && r != -ENOENT ? error_prefixf(reterr, r, "%s", path ? path : "") : r;
}

/* It is created when it is first needed, and recreated if its file is damaged. */
static int find_authority(LoneNode *lone, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (lone->authority)
                return 0;
        r = read_authority(lone, &error);
        if (r >= 0)
                return r > 0 ? write_authority(lone) : 0;
        if (r != -ENOENT)
                log_warning("Cannot use the node's certificate authority: %s; creating a new one, "
                            "earlier kubeconfigs become invalid",
                            error_message(&error, r));
        r = node_authority_new(lone->spec.node_name, now_realtime_usec(), &lone->authority, reterr);
        return r < 0 ? r : write_authority(lone);
}

/* A certificate that is not valid yet was issued while the clock was ahead. */
static bool is_serving_certificate_good(const LoneNode *lone, uint64_t now) {
        return lone->certificate && now < lone->renew_at &&
               (now >= lone->issued_at || !clock_is_set(now));
}

static int renew_serving_certificate(LoneNode *lone, Error *reterr) {
        uint64_t now = now_realtime_usec();
        NodeCertificateSpec spec = {
                .common_name = lone->spec.node_name,
                .dns_names = (const char *const[]){ lone->spec.node_name, "localhost", NULL },
                .addresses = (const char *const[]){ "127.0.0.1", "::1", NULL },
                .valid_days = SERVING_DAYS,
        };
        char *certificate, *key;
        int r;

        if (is_serving_certificate_good(lone, now))
                return 0;
        r = node_authority_issue(lone->authority, &spec, now, &certificate, &key, reterr);
        if (r < 0)
                return r;
        free(lone->certificate);
        secret_free(lone->key);
        lone->certificate = certificate;
        lone->key = key;
        lone->issued_at = now;
        lone->renew_at = now + SERVING_RENEW_DAYS * DAY_USEC;
        return 0;
}

/* ---- settings ---- */

/* Clients of the configured authorities remain valid in addition to those of the node's
 * authority. */
static int add_client_authority(json_t *settings, const char *certificate) {
        const char *configured = json_text(settings, "clientCA");
        json_t *all =
                json_sprintf("%s%s%s", strna(configured), configured ? "\n" : "", certificate);

        return json_object_set_new(settings, "clientCA", all) < 0 ? -ENOMEM : 0;
}

int lone_node_add_settings(LoneNode *lone, json_t *settings, Error *reterr) {
        int r = find_authority(lone, reterr);

        if (r < 0)
                return r;
        r = add_client_authority(settings, node_authority_certificate(lone->authority));
        if (r < 0 || json_object_get(settings, "certificate"))
                return r;
        r = renew_serving_certificate(lone, reterr);
        if (r < 0)
                return r;
        if (json_object_set_new(settings, "certificate", json_string(lone->certificate)) < 0 ||
            json_object_set_new(settings, "key", json_string(lone->key)) < 0)
                return -ENOMEM;
        return 0;
}

/* ---- kubeconfigs ---- */

/* The certificate with which clients verify mainstay-api: the node's authority, or the configured
 * certificate. */
static int read_server_authority(const LoneNode *lone, const char *path, char **ret,
                                 Error *reterr) {
        size_t length;
        int r;

        if (!path || !path[0]) {
                *ret = strdup(node_authority_certificate(lone->authority));
                return *ret ? 0 : -ENOMEM;
        }
        r = read_file_at(AT_FDCWD, path, AUTHORITY_BYTES_MAX, ret, &length);
        return r < 0 ? error_prefixf(reterr, r, "%s", path) : 0;
}

static int issue_administrator(LoneNode *lone, char **ret_certificate, char **ret_key,
                               Error *reterr) {
        NodeCertificateSpec spec = { .common_name = "mainstay-admin",
                                     .organization = "system:masters",
                                     .valid_days = KUBECONFIG_DAYS };

        return node_authority_issue(lone->authority, &spec, now_realtime_usec(), ret_certificate,
                                    ret_key, reterr);
}

/* mainstay-api's address for clients on this machine. If it listens on all addresses, it also
 * listens on IPv4. */
static char *format_server_url(const Config *config) {
        unsigned port = config_node_api_port(config);
        const char *address = config->address;
        struct in6_addr ipv6;
        struct in_addr ipv4;

        if (!address || (inet_pton(AF_INET, address, &ipv4) == 1 && ipv4.s_addr == INADDR_ANY) ||
            (inet_pton(AF_INET6, address, &ipv6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&ipv6)))
                address = "127.0.0.1";
        return text_format(strchr(address, ':') ? "https://[%s]:%u" : "https://%s:%u", address,
                           port);
}

int lone_node_make_kubeconfig(LoneNode *lone, const Config *config, char **ret_json,
                              Error *reterr) {
        cleanup_free char *authority = NULL, *certificate = NULL, *server = NULL;
        cleanup_json json_t *parts = NULL;
        char *key = NULL;
        int r = find_authority(lone, reterr);

        if (r < 0)
                return r;
        r = read_server_authority(lone, config->tls_cert_file, &authority, reterr);
        if (r < 0)
                return r;
        r = issue_administrator(lone, &certificate, &key, reterr);
        if (r < 0)
                return r;
        server = format_server_url(config);
        parts = json_pack("{s:s, s:s, s:s, s:s, s:s}", "nodeName", lone->spec.node_name, "server",
                          server, "certificateAuthority", authority, "clientCertificate",
                          certificate, "clientKey", key);
        secret_free(key);
        *ret_json = parts ? json_to_text(parts, JSON_COMPACT) : NULL;
        return *ret_json ? 0 : -ENOMEM;
}
