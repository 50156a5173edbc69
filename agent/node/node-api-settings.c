/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/node-api-settings.h"

#include "agent/model/duration.h"
#include "agent/model/node-status.h"
#include "agent/node/tls-priorities.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json-text.h"

#include <fcntl.h>

enum {
        PEM_BYTES_MAX = 512 * 1024,
};

static int add_pem_file(json_t *settings, const char *name, const char *path, Error *reterr) {
        cleanup_free char *text = NULL;
        size_t length;
        int r;

        if (!path || !path[0])
                return 0;
        r = read_file_at(AT_FDCWD, path, PEM_BYTES_MAX, &text, &length);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", path);
        r = json_object_set_new(settings, name, json_string(text));
        explicit_bzero(text, length);
        return r < 0 ? error_setf(reterr, EINVAL, "%s is not a PEM file", path) : 0;
}

/* A duration from the configuration, which has been validated. */
static uint64_t read_duration(const char *text, uint64_t usec) {
        if (text)
                (void) duration_parse(text, &usec);
        return usec;
}

static json_int_t read_period_msec(const char *text, uint64_t usec) {
        return (json_int_t) (read_duration(text, usec) / USEC_PER_MSEC);
}

static bool is_on_unless_off(OptionalBool value) {
        return !value.is_set || value.value;
}

/* authentication.anonymous, .webhook (cacheTTL); authorization.mode, .webhook (cacheAuthorizedTTL,
 * cacheUnauthorizedTTL); streamingConnectionIdleTimeout; with the kubelet's defaults. */
static json_t *list_kubelet_api_settings(const NodeApiSettingsSpec *spec) {
        const AuthenticationConfig *authentication = &spec->config->authentication;
        const AuthorizationConfig *authorization = &spec->config->authorization;
        char created[RFC3339_SIZE];

        return json_pack(
                "{s:s, s:s, s:s, s:s*, s:s*, s:s*, s:i, s:b, s:b, s:b, s:b, s:I, s:I, s:I}",
                "nodeName", spec->node_name, "kubernetesVersion", NODE_KUBELET_VERSION,
                "manifestDirectory", spec->manifest_dir, "configurationFile", spec->config_file,
                "nodeCreated", spec->created > 0 ? format_rfc3339(created, spec->created) : NULL,
                "address", spec->config->address, "port", (int) config_node_api_port(spec->config),
                "alone", spec->lone != NULL, "debuggingHandlers",
                is_on_unless_off(spec->config->enable_debugging_handlers), "systemLogs",
                is_on_unless_off(spec->config->enable_system_log_handler), "systemLogQuery",
                spec->config->enable_system_log_query, "tokenCacheMilliseconds",
                read_period_msec(authentication->webhook.cache_ttl, 120 * USEC_PER_SEC),
                "allowedCacheMilliseconds",
                read_period_msec(authorization->webhook.cache_authorized_ttl, 300 * USEC_PER_SEC),
                "streamIdleMilliseconds",
                read_period_msec(spec->config->streaming_connection_idle_timeout,
                                 UINT64_C(4) * 3600 * USEC_PER_SEC));
}

NodeAccessSettings node_access_settings(const Config *config) {
        const AuthenticationConfig *authentication = &config->authentication;
        const AuthorizationConfig *authorization = &config->authorization;

        return (NodeAccessSettings){
                .has_anonymous = authentication->anonymous.enabled,
                .has_token_reviews = is_on_unless_off(authentication->webhook.enabled),
                .has_access_reviews = authorization->mode != AUTHORIZATION_ALWAYS_ALLOW,
                .token_usec = read_duration(authentication->webhook.cache_ttl, 120 * USEC_PER_SEC),
                .allowed_usec = read_duration(authorization->webhook.cache_authorized_ttl,
                                              300 * USEC_PER_SEC),
                .denied_usec = read_duration(authorization->webhook.cache_unauthorized_ttl,
                                             30 * USEC_PER_SEC),
        };
}

/* The issued pair (serverTLSBootstrap), or tlsCertFile and tlsPrivateKeyFile. */
static int add_certificate(const NodeApiSettingsSpec *spec, json_t *settings, Error *reterr) {
        const char *pair = spec->issued_pair;
        int r;

        if (pair)
                return json_object_set_new(settings, "certificate", json_string(pair)) < 0 ||
                                       json_object_set_new(settings, "key", json_string(pair)) < 0
                               ? -ENOMEM
                               : 0;
        r = add_pem_file(settings, "certificate", spec->config->tls_cert_file, reterr);
        return r < 0 ? r
                     : add_pem_file(settings, "key", spec->config->tls_private_key_file, reterr);
}

/* clientCAFile is read here. */
int node_api_settings_to_json(const NodeApiSettingsSpec *spec, char **ret_json, char **ret_material,
                              Error *reterr) {
        const Config *config = spec->config;
        cleanup_json json_t *settings = list_kubelet_api_settings(spec), *material = json_object();
        int r;

        if (!settings)
                return -ENOMEM;
        r = tls_priorities_add_settings(config, settings, reterr);
        if (r < 0)
                return r;
        r = add_certificate(spec, material, reterr);
        if (r < 0)
                return r;
        r = add_pem_file(material, "clientCA", config->authentication.x509.client_ca_file, reterr);
        if (r < 0)
                return r;
        if (spec->lone)
                r = lone_node_add_settings(spec->lone, material, reterr);
        else if (spec->self_signed && !json_object_get(material, "certificate"))
                r = self_signed_add_settings(spec->self_signed, material, reterr);
        if (r < 0)
                return r;
        *ret_json = json_to_text(settings, JSON_COMPACT);
        *ret_material = *ret_json ? json_to_text(material, JSON_COMPACT) : NULL;
        if (*ret_material)
                return 0;
        free(TAKE_PTR(*ret_json));
        return -ENOMEM;
}
