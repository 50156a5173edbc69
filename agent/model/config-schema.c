/* SPDX-License-Identifier: Apache-2.0 */

/* The table of KubeletConfiguration, kubelet.config.k8s.io/v1beta1. A row without a member is a
 * kubelet setting that has no effect here: all of them are listed, so that a kubelet's
 * configuration can be used unchanged. */

#include "agent/model/config.h"
#include "agent/model/day-window.h"
#include "agent/model/duration.h"
#include "agent/model/names.h"
#include "agent/model/quantity.h"
#include "agent/model/schema.h"
#include "agent/model/source-index.h"
#include "agent/model/sysctl.h"
#include "agent/model/tls-names.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/ed25519.h"
#include "common/image-reference.h"
#include "common/registry-name.h"
#include "common/strv.h"
#include "common/text.h"

#include <errno.h>

enum {
        PIDS_MAX = 4 * 1024 * 1024, /* the kernel's PID_MAX_LIMIT */
        LOG_FILES_MAX = 1000,
        SHUTDOWN_SECONDS_MAX = 24 * 3600,
        URL_LENGTH_MAX = 2000,
};

static int check_cgroup_driver(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];

        if (streq(value, "cgroupfs") || streq(value, "systemd"))
                return 0;
        return error_setf(reterr, EINVAL, "must be cgroupfs or systemd, not '%s'",
                          excerpt(text, value));
}

static int check_log_size(const char *value, Error *reterr) {
        cleanup_with(quantity_done) Quantity quantity = { 0 };
        int r = quantity_parse(value, &quantity, reterr);

        if (r < 0)
                return r;
        if (quantity.value <= 0)
                return error_setf(reterr, EINVAL, "must be more than 0");
        return 0;
}

static int check_restart_period(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];
        uint64_t usec;

        if (duration_parse(value, &usec) < 0)
                return error_setf(reterr, EINVAL, "must be a duration such as 300s or 1m, not '%s'",
                                  excerpt(text, value));
        if (usec < USEC_PER_SEC || usec > 300 * USEC_PER_SEC)
                return error_setf(reterr, EINVAL, "must be between 1s and 300s, not '%s'",
                                  excerpt(text, value));
        return 0;
}

static int check_shutdown_period(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];
        uint64_t usec;

        if (duration_parse(value, &usec) < 0)
                return error_setf(reterr, EINVAL, "must be a duration such as 30s or 1m, not '%s'",
                                  excerpt(text, value));
        if ((usec > 0 && usec < USEC_PER_SEC) || usec > SHUTDOWN_SECONDS_MAX * USEC_PER_SEC)
                return error_setf(reterr, EINVAL, "must be either zero or 1s to 24h, not '%s'",
                                  excerpt(text, value));
        return 0;
}

static int check_duration(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];
        uint64_t usec;

        if (duration_parse(value, &usec) >= 0)
                return 0;
        return error_setf(reterr, EINVAL, "must be a duration such as 90s or 2m, not '%s'",
                          excerpt(text, value));
}

static int check_http_frequency(const char *value, Error *reterr) {
        uint64_t usec;
        int r = check_duration(value, reterr);

        if (r < 0)
                return r;
        if (duration_parse(value, &usec) >= 0 && usec > 0 && usec < USEC_PER_SEC)
                return error_setf(reterr, EINVAL, "must be at least 1s");
        return 0;
}

/* The URL may contain a password, so it is not quoted. */
static int check_url_characters(const char *value, Error *reterr) {
        if (strlen(value) > URL_LENGTH_MAX)
                return error_setf(reterr, EINVAL, "must be at most %d characters", URL_LENGTH_MAX);
        for (const char *p = value; *p; p++)
                if ((unsigned char) *p <= ' ' || *p == 0x7f)
                        return error_setf(reterr, EINVAL, "must not contain spaces");
        return 0;
}

/* "" means none, as in the kubelet. */
static int check_static_pod_url(const char *value, Error *reterr) {
        if (!value[0])
                return 0;
        if (strncmp(value, "http://", 7) != 0 && strncmp(value, "https://", 8) != 0)
                return error_setf(reterr, EINVAL, "must start with http:// or https://");
        return check_url_characters(value, reterr);
}

static int check_https_or_file_url(const char *value, const char *what, Error *reterr) {
        bool is_file = strncmp(value, "file:///", 8) == 0;

        if (!is_file && strncmp(value, "https://", 8) != 0)
                return error_setf(reterr, EINVAL, "must start with https:// or file:///");
        if (is_file && (value[strlen(value) - 1] == '/' || strpbrk(value, "?#%")))
                return error_setf(reterr, EINVAL,
                                  "must be the unescaped path of a %s after file://", what);
        return check_url_characters(value, reterr);
}

static int check_index_url(const char *value, Error *reterr) {
        return check_https_or_file_url(value, "file", reterr);
}

/* Over a network the report must be encrypted: statuses and events name the node's workloads. */
static int check_report_url(const char *value, Error *reterr) {
        return check_https_or_file_url(value, "directory", reterr);
}

static int check_signing_key(const char *value, Error *reterr) {
        uint8_t key[ED25519_KEY_SIZE];

        if (ed25519_key_parse(value, key) >= 0)
                return 0;
        return error_setf(reterr, EINVAL, "must be a public key of Ed25519 in base64");
}

static int check_fleet(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];

        if (source_name_is_valid(value))
                return 0;
        return error_setf(reterr, EINVAL,
                          "must be a name of letters, digits, '.', '_' and '-', not '%s'",
                          excerpt(text, value));
}

static int check_download_rate(const char *value, Error *reterr) {
        cleanup_with(quantity_done) Quantity quantity = { 0 };
        int r = quantity_parse(value, &quantity, reterr);

        if (r < 0)
                return r;
        if (quantity.value < (int64_t) KIB)
                return error_setf(reterr, EINVAL, "must be at least 1Ki, in bytes a second");
        return 0;
}

static int check_report_queue_size(const char *value, Error *reterr) {
        cleanup_with(quantity_done) Quantity quantity = { 0 };
        int r = quantity_parse(value, &quantity, reterr);

        if (r < 0)
                return r;
        if (quantity.value < (int64_t) (4 * KIB) || quantity.value > (int64_t) (64 * MIB))
                return error_setf(reterr, EINVAL, "must be 4Ki to 64Mi, in bytes");
        return 0;
}

static int check_download_window(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];
        DayWindow window;

        if (day_window_parse(value, &window) >= 0)
                return 0;
        return error_setf(reterr, EINVAL, "must be two times of day such as 22:00-05:30, not '%s'",
                          excerpt(text, value));
}

/* The value may be a password, so it is not quoted. */
static int check_secret_header_value(const char *value, Error *reterr) {
        for (const char *p = value; *p; p++)
                if ((unsigned char) *p < ' ' || *p == 0x7f)
                        return error_setf(reterr, EINVAL, "must be one line of text");
        return 0;
}

/* Absolute paths, separated by ':'. */
static int check_search_path(const char *value, Error *reterr) {
        for (const char *path = value;; path++) {
                if (*path != '/')
                        return error_setf(reterr, EINVAL,
                                          "must be absolute paths with ':' in between");
                path += strcspn(path, ":");
                if (!*path)
                        return 0;
        }
}

static int check_cluster_domain(const char *value, Error *reterr) {
        return value[0] ? check_dns_subdomain(value, reterr) : 0;
}

/* "" means no file, as in the kubelet. */
static int check_resolv_conf(const char *value, Error *reterr) {
        return value[0] ? check_host_path(value, reterr) : 0;
}

static int check_device_path(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];
        int r = check_host_path(value, reterr);

        if (r < 0)
                return r;
        if (strncmp(value, "/dev/", 5) != 0 || !value[5] || strpbrk(value, " \t\n"))
                return error_setf(reterr, EINVAL,
                                  "must be a path below /dev without spaces, not '%s'",
                                  excerpt(text, value));
        return 0;
}

static int check_device_mode(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];
        bool is_valid = value[0] && strspn(value, "rwm") == strlen(value);

        for (const char *p = value; *p && is_valid; p++)
                is_valid = !strchr(p + 1, *p);
        return is_valid ? 0
                        : error_setf(reterr, EINVAL, "must consist of r, w and m, not '%s'",
                                     excerpt(text, value));
}

static int check_device_number(const char *value, Error *reterr) {
        static const char digits[] = "0123456789abcdefABCDEF";
        char text[EXCERPT_SIZE];
        size_t prefix = strncmp(value, "0x", 2) == 0 ? 2 : 0, n = strlen(value + prefix);

        if (n > 0 && n <= 8 && strspn(value + prefix, digits) == n)
                return 0;
        return error_setf(reterr, EINVAL, "must be hexadecimal digits such as 0403, not '%s'",
                          excerpt(text, value));
}

static int check_device_subsystem(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];

        if (value[0] && strlen(value) <= 64 && !strpbrk(value, "/* \t\n"))
                return 0;
        return error_setf(reterr, EINVAL,
                          "must be the name of a subsystem of the kernel such as tty, not '%s'",
                          excerpt(text, value));
}

static int check_shared_kind(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];

        if (shared_object_kind(value) >= 0)
                return 0;
        return error_setf(reterr, EINVAL,
                          "must be ConfigMap, Secret, PriorityClass or RuntimeClass, not '%s'",
                          excerpt(text, value));
}

static int check_seccomp_profile(const char *value, Error *reterr) {
        return streq(value, "builtin") ? 0 : check_host_path(value, reterr);
}

/* "host" or "host:port"; the registry is not contacted here. */
static int check_registry(const char *value, Error *reterr) {
        cleanup_free char *normal = NULL;
        cleanup_error Error error = ERROR_NULL;
        char text[EXCERPT_SIZE];
        int r = registry_name_normalise(value, &normal, &error);

        return r == -EINVAL ? error_setf(reterr, EINVAL, "must be a host or host:port, not '%s'",
                                         excerpt(text, value))
                            : r;
}

static int check_mirror(const char *value, Error *reterr) {
        const char *rest = strstr(value, "://");
        char text[EXCERPT_SIZE];

        if (rest && strncmp(value, "https://", 8) != 0 && strncmp(value, "http://", 7) != 0)
                rest = "";
        else
                rest = rest ? rest + 3 : value;
        if (!strpbrk(rest, " \t?#@\\")) {
                cleanup_free char *host = strndup(rest, strcspn(rest, "/")), *normal = NULL;
                int r = host ? registry_name_normalise(host, &normal, NULL) : -ENOMEM;

                if (r != -EINVAL)
                        return r;
        }
        return error_setf(reterr, EINVAL,
                          "must be an address such as https://mirror.example.com/prefix, not '%s'",
                          excerpt(text, value));
}

static int check_config_proxy_url(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];

        if (strncmp(value, "http://", 7) == 0 || strncmp(value, "https://", 8) == 0)
                return 0;
        return error_setf(reterr, EINVAL, "must start with http:// or https://, not '%s'",
                          excerpt(text, value));
}

static const char *const credentials_policy_names[N_CREDENTIALS_POLICIES] = {
        [CREDENTIALS_NEVER_OF_PRELOADED] = "NeverVerifyPreloadedImages",
        [CREDENTIALS_NEVER] = "NeverVerify",
        [CREDENTIALS_NEVER_OF_ALLOWLISTED] = "NeverVerifyAllowlistedImages",
        [CREDENTIALS_ALWAYS] = "AlwaysVerify",
};

/* A pattern that cannot match any image name would be an undetected mistake. */
static int check_allowlist_name(const char *value, const char *star, Error *reterr) {
        cleanup_free char *start = NULL, *normal = NULL;
        int r;

        if (!star)
                return image_reference_repository(value, &normal, reterr);
        start = strndup(value, (size_t) (star - value) - 1);
        if (!start)
                return -ENOMEM;
        r = image_reference_normalise_prefix(start, &normal, reterr);
        return r;
}

/* The name of a repository, or a prefix of names that ends with a slash and a star. */
static int check_allowlist_pattern(const char *value, Error *reterr) {
        const char *star = strchr(value, '*'), *path = strrchr(value, '/');
        char text[EXCERPT_SIZE];

        if (strpbrk(value, " \t\n"))
                return error_setf(reterr, EINVAL, "must not have spaces, as '%s' has",
                                  excerpt(text, value));
        if (star && (star[1] || star < value + 2 || star[-1] != '/'))
                return error_setf(reterr, EINVAL,
                                  "only patterns that end with '/*' are allowed, not '%s'",
                                  excerpt(text, value));
        if (!value[0] || strpbrk(path ? path : value, ":@"))
                return error_setf(reterr, EINVAL,
                                  "must be the name of an image without a tag or digest, not '%s'",
                                  excerpt(text, value));
        return check_allowlist_name(value, star, reterr);
}

static const char *const swap_behavior_names[N_SWAP_BEHAVIORS] = {
        [SWAP_NONE] = "NoSwap",
        [SWAP_LIMITED] = "LimitedSwap",
};

static const char *const enforced_names[] = { "none",
                                              "pods",
                                              "system-reserved",
                                              "kube-reserved",
                                              "system-reserved-compressible",
                                              "kube-reserved-compressible" };

static int check_enforced(const char *value, Error *reterr) {
        char text[EXCERPT_SIZE];

        for (size_t i = 0; i < N_ELEMENTS(enforced_names); i++)
                if (streq(value, enforced_names[i]))
                        return 0;
        return error_setf(reterr, EINVAL,
                          "must be none, pods, system-reserved, kube-reserved, "
                          "system-reserved-compressible or kube-reserved-compressible, not '%s'",
                          excerpt(text, value));
}

int shared_object_kind(const char *name) {
        for (ObjectKind kind = 0; kind < N_OBJECT_KINDS; kind++)
                if (streq(name, object_kind_names[kind]) && !object_kind_is_api_only(kind))
                        return (int) kind;
        return -EINVAL;
}

bool config_enforces(const Config *config, const char *what) {
        if (!config->enforce_node_allocatable)
                return streq(what, "pods");
        return strv_contains(config->enforce_node_allocatable, what);
}

int config_note_without_effect(Config *config, const char *setting) {
        char *names = text_format("%s%s%s", strna(config->without_effect),
                                  config->without_effect ? ", " : "", setting);

        if (!names)
                return -ENOMEM;
        free(config->without_effect);
        config->without_effect = names;
        return 0;
}

bool config_has_built_in_network(const Config *config, bool has_joined) {
        OptionalBool built_in = config->mainstay.built_in_network;

        return built_in.is_set ? built_in.value : !has_joined;
}

uint16_t config_node_api_port(const Config *config) {
        return config->port.is_set ? (uint16_t) config->port.value : NODE_API_PORT_DEFAULT;
}

int64_t config_max_pods(const Config *config, unsigned n_cpus) {
        int64_t max = config->max_pods.is_set ? config->max_pods.value : MAX_PODS_DEFAULT;
        int64_t by_cores = config->pods_per_core.value * n_cpus;

        return by_cores > 0 ? MIN(max, by_cores) : max;
}

/* clang-format off */
static const Field crash_loop_back_off_fields[] = {
        FIELD("maxContainerRestartPeriod", STRING, CrashLoopBackOffConfig,
              max_container_restart_period, .check = check_restart_period),
};
static const Schema crash_loop_back_off_schema =
        SCHEMA(CrashLoopBackOffConfig, crash_loop_back_off_fields);

static const Field shutdown_by_priority_fields[] = {
        FIELD("priority", INT, ShutdownGracePeriodByPodPriority, priority, .is_required = true,
              .min = INT32_MIN, .max = INT32_MAX),
        FIELD("shutdownGracePeriodSeconds", INT, ShutdownGracePeriodByPodPriority,
              shutdown_grace_period_seconds, .is_required = true, .min = 0, .max = SHUTDOWN_SECONDS_MAX),
};
static const Schema shutdown_by_priority_schema =
        SCHEMA(ShutdownGracePeriodByPodPriority, shutdown_by_priority_fields);
static const Field registry_mirrors_fields[] = {
        FIELD("registry", STRING, RegistryMirrors, registry, .check = check_registry, .is_required = true),
        FIELD("mirrors", STRINGS, RegistryMirrors, mirrors, .check = check_mirror, .is_required = true),
};
static const Schema registry_mirrors_schema = SCHEMA(RegistryMirrors, registry_mirrors_fields, .is_strict = true);

static const Field memory_swap_fields[] = {
        FIELD("swapBehavior", ENUM, MemorySwapConfig, swap_behavior,
              ENUM_NAMES(swap_behavior_names)),
};
static const Schema memory_swap_schema = SCHEMA(MemorySwapConfig, memory_swap_fields);

static const Field anonymous_fields[] = {
        FIELD("enabled", BOOL, AnonymousConfig, enabled),
};
static const Schema anonymous_schema = SCHEMA(AnonymousConfig, anonymous_fields);

static const Field webhook_authentication_fields[] = {
        FIELD("enabled", OPTIONAL_BOOL, WebhookAuthenticationConfig, enabled),
        FIELD("cacheTTL", STRING, WebhookAuthenticationConfig, cache_ttl, .check = check_duration),
};
static const Schema webhook_authentication_schema =
        SCHEMA(WebhookAuthenticationConfig, webhook_authentication_fields);

static const Field x509_authentication_fields[] = {
        FIELD("clientCAFile", STRING, X509AuthenticationConfig, client_ca_file, .check = check_host_path),
};
static const Schema x509_authentication_schema =
        SCHEMA(X509AuthenticationConfig, x509_authentication_fields);

static const Field authentication_fields[] = {
        FIELD("anonymous", OBJECT, AuthenticationConfig, anonymous, .schema = &anonymous_schema),
        FIELD("webhook", OBJECT, AuthenticationConfig, webhook, .schema = &webhook_authentication_schema),
        FIELD("x509", OBJECT, AuthenticationConfig, x509, .schema = &x509_authentication_schema),
};
static const Schema authentication_schema = SCHEMA(AuthenticationConfig, authentication_fields);

static const char *const authorization_mode_names[N_AUTHORIZATION_MODES] = {
        [AUTHORIZATION_ALWAYS_ALLOW] = "AlwaysAllow",
        [AUTHORIZATION_WEBHOOK] = "Webhook",
};

static const Field webhook_authorization_fields[] = {
        FIELD("cacheAuthorizedTTL", STRING, WebhookAuthorizationConfig, cache_authorized_ttl,
              .check = check_duration),
        FIELD("cacheUnauthorizedTTL", STRING, WebhookAuthorizationConfig, cache_unauthorized_ttl,
              .check = check_duration),
};
static const Schema webhook_authorization_schema =
        SCHEMA(WebhookAuthorizationConfig, webhook_authorization_fields);

static const Field authorization_fields[] = {
        FIELD("mode", ENUM, AuthorizationConfig, mode, ENUM_NAMES(authorization_mode_names)),
        FIELD("webhook", OBJECT, AuthorizationConfig, webhook, .schema = &webhook_authorization_schema),
};
static const Schema authorization_schema = SCHEMA(AuthorizationConfig, authorization_fields);

static const char *const daemonsets_by_names[N_DAEMONSETS_BY] = {
        [DAEMONSETS_AUTO] = "auto",
        [DAEMONSETS_NODE] = "node",
        [DAEMONSETS_CONTROLLER] = "controller",
};

static const Field source_fields[] = {
        FIELD("url", STRING, SourceConfig, url, .check = check_index_url, .is_required = true, .is_secret = true),
        FIELD("keys", STRINGS, SourceConfig, keys, .check = check_signing_key, .is_required = true),
        FIELD("fleet", STRING, SourceConfig, fleet, .check = check_fleet, .is_required = true),
        FIELD("caFile", STRING, SourceConfig, ca_file, .check = check_host_path),
        FIELD("interval", STRING, SourceConfig, interval, .check = check_http_frequency),
        FIELD("jitter", STRING, SourceConfig, jitter, .check = check_duration),
        FIELD("downloadRate", STRING, SourceConfig, download_rate, .check = check_download_rate),
        FIELD("downloadWindow", STRING, SourceConfig, download_window, .check = check_download_window),
};
static const Schema source_schema = SCHEMA(SourceConfig, source_fields, .is_strict = true);

static const Field device_match_fields[] = {
        FIELD("subsystem", STRING, DeviceMatch, subsystem, .check = check_device_subsystem),
        FIELD("vendor", STRING, DeviceMatch, vendor, .check = check_device_number),
        FIELD("product", STRING, DeviceMatch, product, .check = check_device_number),
        FIELD("serial", STRING, DeviceMatch, serial, .is_not_empty = true),
        FIELD("properties", STRING_MAP, DeviceMatch, properties),
};
static const Schema device_match_schema = SCHEMA(DeviceMatch, device_match_fields, .is_strict = true);

static const Field node_device_fields[] = {
        FIELD("name", STRING, NodeDeviceConfig, name, .check = check_dns_label, .is_required = true),
        FIELD("match", OPTIONAL, NodeDeviceConfig, match, .schema = &device_match_schema),
        FIELD("path", STRING, NodeDeviceConfig, path, .check = check_device_path),
        FIELD("containerPath", STRING, NodeDeviceConfig, container_path, .check = check_device_path),
        FIELD("mode", STRING, NodeDeviceConfig, mode, .check = check_device_mode),
        FIELD("count", INT, NodeDeviceConfig, count, .min = 1, .max = NODE_DEVICES_MAX),
        FIELD("shared", BOOL, NodeDeviceConfig, is_shared),
        FIELD("optional", BOOL, NodeDeviceConfig, is_optional),
        FIELD("grouped", BOOL, NodeDeviceConfig, is_grouped),
};
static const Schema node_device_schema = SCHEMA(NodeDeviceConfig, node_device_fields, .is_strict = true);

static const Field shared_object_fields[] = {
        FIELD("kind", STRING, SharedObject, kind_name, .is_required = true, .check = check_shared_kind),
        FIELD("namespace", STRING, SharedObject, namespace, .check = check_dns_label),
        FIELD("name", STRING, SharedObject, name, .is_required = true, .check = check_dns_subdomain),
        FIELD("from", ENUM, SharedObject, from, .is_required = true, ENUM_NAMES(object_source_names)),
        FIELD("to", ENUM, SharedObject, to, .is_required = true, ENUM_NAMES(object_source_names)),
};
static const Schema shared_object_schema = SCHEMA(SharedObject, shared_object_fields, .is_strict = true);

static const Field static_pod_url_header_fields[] = {
        FIELD("name", STRING, StaticPodUrlHeader, name, .check = check_header_name),
        FIELD("values", STRINGS, StaticPodUrlHeader, values, .check = check_secret_header_value,
              .is_secret = true),
};
static const Schema static_pod_url_header_schema =
        SCHEMA(StaticPodUrlHeader, static_pod_url_header_fields);

static const Field report_fields[] = {
        FIELD("url", STRING, ReportConfig, url, .check = check_report_url, .is_required = true, .is_secret = true),
        FIELD("caFile", STRING, ReportConfig, ca_file, .check = check_host_path),
        FIELD("headers", MAP, ReportConfig, headers, .schema = &static_pod_url_header_schema, .is_secret = true),
        FIELD("interval", STRING, ReportConfig, interval, .check = check_http_frequency),
        FIELD("jitter", STRING, ReportConfig, jitter, .check = check_duration),
        FIELD("queueSize", STRING, ReportConfig, queue_size, .check = check_report_queue_size),
        FIELD("logLines", INT, ReportConfig, log_lines, .max = REPORT_LOG_LINES_MAX),
};
static const Schema report_schema = SCHEMA(ReportConfig, report_fields, .is_strict = true);

static int check_daemonset_namespace(const char *value, Error *reterr) {
        return streq(value, "*") ? 0 : check_dns_label(value, reterr);
}

/* This setting exists only in Mainstay, so an unknown name is an error; otherwise the restriction
 * would not be enforced. */
static const char *const secrets_at_rest_names[N_SECRETS_AT_REST] = {
        [SECRETS_SEALED] = "sealed",
        [SECRETS_CLEAR] = "clear",
};

static const Field mainstay_fields[] = {
        FIELD("bootstrapKubeconfig", STRING, MainstayConfig, bootstrap_kubeconfig, .check = check_host_path),
        FIELD("builtInNetwork", OPTIONAL_BOOL, MainstayConfig, built_in_network),
        FIELD("cdiForApiPods", BOOL, MainstayConfig, cdi_for_api_pods),
        FIELD("cdiSpecDirs", STRINGS, MainstayConfig, cdi_spec_dirs, .check = check_host_path),
        FIELD("cniBinDir", STRING, MainstayConfig, cni_bin_dir, .check = check_search_path),
        FIELD("cniConfDir", STRING, MainstayConfig, cni_conf_dir, .check = check_host_path),
        FIELD("daemonSetNamespaces", STRINGS, MainstayConfig, daemonset_namespaces, .check = check_daemonset_namespace),
        FIELD("daemonSets", ENUM, MainstayConfig, daemonsets_by, ENUM_NAMES(daemonsets_by_names)),
        FIELD("devices", LIST, MainstayConfig, devices, .schema = &node_device_schema),
        FIELD("httpProxy", STRING, MainstayConfig, http_proxy, .check = check_config_proxy_url,
              .is_secret = true),
        FIELD("httpsProxy", STRING, MainstayConfig, https_proxy, .check = check_config_proxy_url,
              .is_secret = true),
        FIELD("insecureRegistries", STRINGS, MainstayConfig, insecure_registries, .check = check_registry),
        FIELD("journalContainerLogs", BOOL, MainstayConfig, journal_container_logs),
        FIELD("kubeconfig", STRING, MainstayConfig, kubeconfig, .check = check_host_path),
        FIELD("maxParallelPulls", INT, MainstayConfig, max_parallel_pulls, .min = 1, .max = PULLS_MAX),
        FIELD("noProxy", STRING, MainstayConfig, no_proxy),
        FIELD("podCIDRs", STRINGS, MainstayConfig, pod_cidrs),
        FIELD("registryAuthFile", STRING, MainstayConfig, registry_auth_file, .check = check_host_path),
        FIELD("registryMirrors", LIST, MainstayConfig, registry_mirrors, .schema = &registry_mirrors_schema),
        FIELD("nodeLabels", STRING_MAP, MainstayConfig, node_labels),
        FIELD("signaturePolicyFile", STRING, MainstayConfig, signature_policy_file, .check = check_host_path),
        FIELD("source", OPTIONAL, MainstayConfig, source, .schema = &source_schema),
        FIELD("report", OPTIONAL, MainstayConfig, report, .schema = &report_schema),
        FIELD("runtime", STRING, MainstayConfig, runtime),
        FIELD("runtimes", STRING_MAP, MainstayConfig, runtimes),
        FIELD("seccompProfile", STRING, MainstayConfig, seccomp_profile,
              .check = check_seccomp_profile),
        FIELD("secretsAtRest", ENUM, MainstayConfig, secrets_at_rest, ENUM_NAMES(secrets_at_rest_names)),
        FIELD("sharedObjects", LIST, MainstayConfig, shared_objects, .schema = &shared_object_schema),
};
static const Schema mainstay_schema = SCHEMA(MainstayConfig, mainstay_fields, .is_strict = true);

/* For a setting without effect, the value that matches the behaviour of this agent, such as the
 * kubelet's default. The agent warns about all other values. */
static const Field config_fields[] = {
        IGNORED("kind"),
        IGNORED("apiVersion"),
        FIELD("enableServer", OPTIONAL_BOOL, Config, enable_server),
        FIELD("staticPodPath", STRING, Config, static_pod_path, .check = check_host_path),
        REFUSED("podLogsDir"),
        REFUSED_BUT("syncFrequency", "1m"),
        REFUSED_BUT("fileCheckFrequency", "20s"),
        FIELD("httpCheckFrequency", STRING, Config, http_check_frequency, .check = check_http_frequency),
        FIELD("staticPodURL", STRING, Config, static_pod_url, .check = check_static_pod_url,
              .is_secret = true),
        FIELD("staticPodURLHeader", MAP, Config, static_pod_url_header,
              .schema = &static_pod_url_header_schema, .is_secret = true),
        FIELD("address", STRING, Config, address, .check = check_ip_address),
        FIELD("port", INT, Config, port, .min = 1, .max = UINT16_MAX),
        FIELD("readOnlyPort", INT, Config, read_only_port, .min = 0, .max = UINT16_MAX),
        FIELD("tlsCertFile", STRING, Config, tls_cert_file, .check = check_host_path),
        FIELD("tlsPrivateKeyFile", STRING, Config, tls_private_key_file, .check = check_host_path),
        FIELD("tlsCipherSuites", STRINGS, Config, tls_cipher_suites, .check = check_tls_cipher_suite),
        FIELD("tlsCurvePreferences", INTS, Config, tls_curve_preferences, .min = 1, .max = UINT16_MAX),
        FIELD("tlsMinVersion", STRING, Config, tls_min_version, .check = check_tls_version),
        FIELD("rotateCertificates", BOOL, Config, rotate_certificates),
        FIELD("serverTLSBootstrap", BOOL, Config, server_tls_bootstrap),
        FIELD("authentication", OBJECT, Config, authentication, .schema = &authentication_schema),
        FIELD("authorization", OBJECT, Config, authorization, .schema = &authorization_schema),
        REFUSED_BUT("registryPullQPS", "5"),
        REFUSED_BUT("registryBurst", "10"),
        FIELD("imagePullCredentialsVerificationPolicy", ENUM, Config, image_credentials_policy,
              ENUM_NAMES(credentials_policy_names)),
        FIELD("preloadedImagesVerificationAllowlist", STRINGS, Config, preloaded_images_allowlist, .check = check_allowlist_pattern),
        REFUSED_BUT("eventRecordQPS", "50"),
        REFUSED_BUT("eventBurst", "100"),
        FIELD("enableDebuggingHandlers", OPTIONAL_BOOL, Config, enable_debugging_handlers),
        REFUSED_BUT("enableContentionProfiling", "false"),
        FIELD("healthzPort", INT, Config, healthz_port, .min = 0, .max = UINT16_MAX),
        FIELD("healthzBindAddress", STRING, Config, healthz_bind_address, .check = check_ip_address),
        REFUSED_BUT("oomScoreAdj", "-999"),
        FIELD("clusterDomain", STRING, Config, cluster_domain, .check = check_cluster_domain),
        FIELD("clusterDNS", STRINGS, Config, cluster_dns, .check = check_ip_address),
        FIELD("streamingConnectionIdleTimeout", STRING, Config, streaming_connection_idle_timeout,
              .check = check_duration),
        REFUSED_BUT("nodeStatusUpdateFrequency", "10s"),
        REFUSED_BUT("nodeStatusReportFrequency", "5m"),
        REFUSED_BUT("nodeLeaseDurationSeconds", "40"),
        FIELD("imageMinimumGCAge", STRING, Config, image_minimum_gc_age, .check = check_duration),
        FIELD("imageMaximumGCAge", STRING, Config, image_maximum_gc_age, .check = check_duration),
        FIELD("imageGCHighThresholdPercent", INT, Config, image_gc_high_threshold_percent,
              .min = 0, .max = 100),
        FIELD("imageGCLowThresholdPercent", INT, Config, image_gc_low_threshold_percent,
              .min = 0, .max = 100),
        REFUSED_BUT("volumeStatsAggPeriod", "1m"),
        REFUSED("kubeletCgroups"),
        REFUSED("systemCgroups"),
        FIELD("cgroupRoot", STRING, Config, cgroup_root, .check = check_host_path),
        REFUSED_BUT("cgroupsPerQOS", "true"),
        FIELD("cgroupDriver", STRING, Config, cgroup_driver, .check = check_cgroup_driver),
        REFUSED_BUT("cpuManagerPolicy", "none"),
        FIELD("singleProcessOOMKill", OPTIONAL_BOOL, Config, single_process_oom_kill),
        REFUSED("cpuManagerPolicyOptions"),
        REFUSED_BUT("cpuManagerReconcilePeriod", "10s"),
        REFUSED_BUT("memoryManagerPolicy", "None"),
        REFUSED_BUT("topologyManagerPolicy", "none"),
        REFUSED_BUT("topologyManagerScope", "container"),
        REFUSED("topologyManagerPolicyOptions"),
        REFUSED("qosReserved"),
        REFUSED_BUT("runtimeRequestTimeout", "2m"),
        REFUSED_BUT("hairpinMode", "promiscuous-bridge"),
        FIELD("maxPods", INT, Config, max_pods, .min = 0, .max = INT32_MAX),
        FIELD("podCIDR", STRING, Config, pod_cidr),
        FIELD("podPidsLimit", INT, Config, pod_pids_limit, .min = -1, .max = PIDS_MAX),
        FIELD("resolvConf", STRING, Config, resolv_conf, .check = check_resolv_conf),
        REFUSED_BUT("runOnce", "false"),
        REFUSED_BUT("cpuCFSQuota", "true"),
        REFUSED_BUT("cpuCFSQuotaPeriod", "100ms"),
        REFUSED_BUT("nodeStatusMaxImages", "50"),
        REFUSED_BUT("maxOpenFiles", "1000000"),
        REFUSED_BUT("contentType", "application/vnd.kubernetes.protobuf"),
        REFUSED_BUT("kubeAPIQPS", "50"),
        REFUSED_BUT("kubeAPIBurst", "100"),
        FIELD("serializeImagePulls", OPTIONAL_BOOL, Config, serialize_image_pulls),
        FIELD("maxParallelImagePulls", INT, Config, max_parallel_image_pulls, .min = 1, .max = PULLS_MAX),
        FIELD("evictionHard", STRING_MAP, Config, eviction_hard),
        FIELD("evictionSoft", STRING_MAP, Config, eviction_soft),
        FIELD("evictionSoftGracePeriod", STRING_MAP, Config, eviction_soft_grace_period),
        FIELD("evictionPressureTransitionPeriod", STRING, Config,
              eviction_pressure_transition_period, .check = check_duration),
        FIELD("evictionMaxPodGracePeriod", INT, Config, eviction_max_pod_grace_period,
              .min = -1, .max = INT32_MAX),
        FIELD("evictionMinimumReclaim", STRING_MAP, Config, eviction_minimum_reclaim),
        FIELD("mergeDefaultEvictionSettings", BOOL, Config, merge_default_eviction_settings),
        FIELD("podsPerCore", INT, Config, pods_per_core, .min = 0, .max = INT32_MAX),
        REFUSED_BUT("enableControllerAttachDetach", "true"),
        REFUSED_BUT("protectKernelDefaults", "false"),
        REFUSED_BUT("makeIPTablesUtilChains", "true"),
        REFUSED_BUT("iptablesMasqueradeBit", "14"),
        REFUSED_BUT("iptablesDropBit", "15"),
        REFUSED("featureGates"),
        REFUSED_BUT("failSwapOn", "false"),
        FIELD("memorySwap", OBJECT, Config, memory_swap, .schema = &memory_swap_schema),
        FIELD("containerLogMaxSize", STRING, Config, container_log_max_size,
              .check = check_log_size),
        FIELD("containerLogMaxFiles", INT, Config, container_log_max_files,
              .min = 2, .max = LOG_FILES_MAX),
        REFUSED_BUT("containerLogMaxWorkers", "1"),
        REFUSED_BUT("containerLogMonitorInterval", "10s"),
        REFUSED_BUT("configMapAndSecretChangeDetectionStrategy", "Watch"),
        FIELD("systemReserved", STRING_MAP, Config, system_reserved),
        FIELD("kubeReserved", STRING_MAP, Config, kube_reserved),
        REFUSED("reservedSystemCPUs"),
        REFUSED("showHiddenMetricsForVersion"),
        FIELD("systemReservedCgroup", STRING, Config, system_reserved_cgroup, .check = check_host_path),
        FIELD("kubeReservedCgroup", STRING, Config, kube_reserved_cgroup, .check = check_host_path),
        FIELD("enforceNodeAllocatable", STRINGS, Config, enforce_node_allocatable,
              .check = check_enforced),
        FIELD("allowedUnsafeSysctls", STRINGS, Config, allowed_unsafe_sysctls,
              .check = check_sysctl_pattern),
        REFUSED("defaultPodSysctls"),
        REFUSED_BUT("volumePluginDir", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"),
        REFUSED("providerID"),
        FIELD("kernelMemcgNotification", BOOL, Config, kernel_memcg_notification),
        REFUSED("logging"),
        FIELD("enableSystemLogHandler", OPTIONAL_BOOL, Config, enable_system_log_handler),
        FIELD("enableSystemLogQuery", BOOL, Config, enable_system_log_query),
        FIELD("shutdownGracePeriod", STRING, Config, shutdown_grace_period,
              .check = check_shutdown_period),
        FIELD("shutdownGracePeriodCriticalPods", STRING, Config,
              shutdown_grace_period_critical_pods, .check = check_shutdown_period),
        FIELD("shutdownGracePeriodByPodPriority", LIST, Config, shutdown_by_priority,
              .schema = &shutdown_by_priority_schema),
        FIELD("crashLoopBackOff", OBJECT, Config, crash_loop_back_off,
              .schema = &crash_loop_back_off_schema),
        REFUSED("reservedMemory"),
        REFUSED_BUT("enableProfilingHandler", "true"),
        REFUSED_BUT("enableDebugFlagsHandler", "true"),
        REFUSED_BUT("seccompDefault", "false"),
        REFUSED_BUT("memoryThrottlingFactor", "0.9"),
        REFUSED("memoryReservationPolicy"),
        FIELD("registerWithTaints", LIST, Config, register_with_taints, .schema = &taint_schema),
        REFUSED_BUT("registerNode", "true"),
        REFUSED("tracing"),
        REFUSED_BUT("localStorageCapacityIsolation", "true"),
        REFUSED("containerRuntimeEndpoint"),
        REFUSED("imageServiceEndpoint"),
        REFUSED_BUT("failCgroupV1", "false"),
        REFUSED("userNamespaces"),
        FIELD("mainstay", OBJECT, Config, mainstay, .schema = &mainstay_schema),
};
/* clang-format on */

const Schema config_schema = {
        .name = "KubeletConfiguration",
        .size = sizeof(Config),
        .fields = config_fields,
        .n_fields = N_ELEMENTS(config_fields),
};
