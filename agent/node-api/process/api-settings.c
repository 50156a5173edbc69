/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/process/api-settings.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"

#define PERIOD_MSEC_MAX (INT64_C(366) * 24 * 3600 * 1000)

void api_settings_done(ApiSettings *settings) {
        free(settings->node_name);
        free(settings->tls_priorities);
        free(settings->tls12_ecdsa_priorities);
        free(settings->tls12_rsa_priorities);
        free(settings->version);
        free(settings->manifest_directory);
        free(settings->config_file);
        free(settings->node_created);
        free(settings->address);
        *settings = (ApiSettings){ 0 };
}

static uint64_t read_period(const json_t *object, const char *name) {
        json_int_t msec = json_integer_value(json_object_get(object, name));

        return msec < 0 ? 0 : (uint64_t) MIN(msec, PERIOD_MSEC_MAX) * USEC_PER_MSEC;
}

static bool read_setting_flag(const json_t *object, const char *name) {
        return json_is_true(json_object_get(object, name));
}

static int copy_tls_priorities(const json_t *object, ApiSettings *settings) {
        int r = json_copy_text(object, "tlsPriorities", &settings->tls_priorities);

        if (r < 0)
                return r;
        r = json_copy_text(object, "tls12EcdsaPriorities", &settings->tls12_ecdsa_priorities);
        if (r < 0)
                return r;
        return json_copy_text(object, "tls12RsaPriorities", &settings->tls12_rsa_priorities);
}

int api_settings_parse(const char *json, ApiSettings *ret, Error *reterr) {
        cleanup_json json_t *object = json_loads(json, 0, NULL);
        cleanup_with(api_settings_done) ApiSettings settings = { 0 };
        int r;

        if (!json_is_string(json_object_get(object, "nodeName")))
                return error_setf(reterr, EBADMSG, "the agent's settings have no nodeName");
        r = json_copy_text(object, "nodeName", &settings.node_name);
        if (r < 0)
                return r;
        r = copy_tls_priorities(object, &settings);
        if (r < 0)
                return r;
        r = json_copy_text(object, "kubernetesVersion", &settings.version);
        if (r < 0)
                return r;
        r = json_copy_text(object, "manifestDirectory", &settings.manifest_directory);
        if (r < 0)
                return r;
        r = json_copy_text(object, "configurationFile", &settings.config_file);
        if (r < 0)
                return r;
        r = json_copy_text(object, "nodeCreated", &settings.node_created);
        if (r < 0)
                return r;
        r = json_copy_text(object, "address", &settings.address);
        if (r < 0)
                return r;
        settings.port = (unsigned) json_integer_value(json_object_get(object, "port"));
        settings.is_alone = read_setting_flag(object, "alone");
        settings.has_debugging = read_setting_flag(object, "debuggingHandlers");
        settings.has_system_logs = read_setting_flag(object, "systemLogs");
        settings.has_log_queries = read_setting_flag(object, "systemLogQuery");
        settings.token_cache_usec = read_period(object, "tokenCacheMilliseconds");
        settings.allowed_usec = read_period(object, "allowedCacheMilliseconds");
        settings.stream_idle_usec = read_period(object, "streamIdleMilliseconds");
        *ret = settings;
        settings = (ApiSettings){ 0 };
        return 0;
}
