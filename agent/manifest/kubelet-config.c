/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the agent's configuration (KubeletConfiguration): defaults, and the rules that the tables
 * of model/config-schema.c cannot express. */

#include "agent/manifest/config-eviction.h"
#include "agent/manifest/config-files.h"
#include "agent/manifest/config-pod-cidrs.h"
#include "agent/manifest/config-reserved.h"
#include "agent/manifest/decode.h"
#include "agent/manifest/manifest.h"
#include "agent/model/duration.h"
#include "agent/model/names.h"
#include "agent/model/quantity.h"
#include "agent/model/source-index.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <unistd.h>

#define CONFIG_BYTES_MAX       MIB
#define BACK_OFF_INITIAL_SEC   10
#define RESTART_PERIOD_DEFAULT "300s"
#define LOG_MAX_SIZE_DEFAULT   "10Mi"
#define LOG_MAX_FILES_DEFAULT  5
#define CONFIG_KIND            "KubeletConfiguration"
/* shutdownGracePeriod for all pods, and the part of it for critical pods, which terminate last. */
#define SHUTDOWN_TOTAL_SEC    UINT64_C(30)
#define SHUTDOWN_CRITICAL_SEC UINT64_C(10)
#define CONFIG_VERSION        "kubelet.config.k8s.io/v1beta1"

void config_done(Config *config) {
        free(config->without_effect);
        schema_done(&config_schema, config);
}

/* Go prints an unset duration as "0s", which the kubelet reads as its default. */
static void unset_zero_durations(Config *config) {
        SourceConfig *source = config->mainstay.source;
        ReportConfig *report = config->mainstay.report;
        char *none = NULL;
        char **const durations[] = {
                &config->http_check_frequency,
                source ? &source->interval : &none,
                source ? &source->jitter : &none,
                report ? &report->interval : &none,
                report ? &report->jitter : &none,
                &config->image_minimum_gc_age,
                &config->image_maximum_gc_age,
                &config->shutdown_grace_period,
                &config->shutdown_grace_period_critical_pods,
                &config->eviction_pressure_transition_period,
                &config->streaming_connection_idle_timeout,
                &config->authentication.webhook.cache_ttl,
                &config->authorization.webhook.cache_authorized_ttl,
                &config->authorization.webhook.cache_unauthorized_ttl,
        };

        for (size_t i = 0; i < N_ELEMENTS(durations); i++) {
                uint64_t usec;

                if (*durations[i] && duration_parse(*durations[i], &usec) >= 0 && usec == 0)
                        free(TAKE_PTR(*durations[i]));
        }
}

static int default_string(char **string, const char *value) {
        if (!*string)
                *string = strdup(value);
        return *string ? 0 : -ENOMEM;
}

static void default_int(OptionalInt *number, int64_t value) {
        if (!number->is_set)
                *number = (OptionalInt){ .is_set = true, .value = value };
}

/* The default directories of every runtime that supports CDI. */
static int default_cdi_directories(char ***directories) {
        int r;

        if (*directories)
                return 0;
        r = strv_append(directories, "/etc/cdi");
        return r < 0 ? r : strv_append(directories, "/var/run/cdi");
}

static int config_set_defaults(Config *config) {
        const struct {
                char **string;
                const char *value;
        } strings[] = {
                { &config->cgroup_root, "/" },
                { &config->container_log_max_size, LOG_MAX_SIZE_DEFAULT },
                { &config->crash_loop_back_off.max_container_restart_period,
                  RESTART_PERIOD_DEFAULT },
                { &config->http_check_frequency, "20s" },
                { &config->image_minimum_gc_age, "2m" },
                { &config->cluster_domain, "cluster.local" },
                { &config->resolv_conf, "/etc/resolv.conf" },
                { &config->healthz_bind_address, "127.0.0.1" },
                { &config->mainstay.runtime, "runc" },
                { &config->mainstay.cni_conf_dir, "/etc/cni/net.d" },
                { &config->mainstay.cni_bin_dir, "/opt/cni/bin:/usr/lib/cni:/usr/libexec/cni" },
        };

        for (size_t i = 0; i < N_ELEMENTS(strings); i++)
                if (default_string(strings[i].string, strings[i].value) < 0)
                        return -ENOMEM;
        if (default_cdi_directories(&config->mainstay.cdi_spec_dirs) < 0)
                return -ENOMEM;
        default_int(&config->container_log_max_files, LOG_MAX_FILES_DEFAULT);
        default_int(&config->image_gc_high_threshold_percent, 85);
        default_int(&config->image_gc_low_threshold_percent, 80);
        default_int(&config->pod_pids_limit, -1);
        return 0;
}

static int check_node_labels(const Decoder *d, const YamlNode *root, const Config *config) {
        const DecodePath outer = { .key = "mainstay" };
        const DecodePath map = { .parent = &outer, .key = "nodeLabels" };
        const StringMap *labels = &config->mainstay.node_labels;

        for (size_t i = 0; i < labels->n; i++) {
                const DecodePath path = { .parent = &map,
                                          .key = labels->items[i].key,
                                          .is_map_key = true };
                int r = check_label_key(labels->items[i].key, d->reterr);

                if (r >= 0)
                        r = check_label_value(labels->items[i].value, d->reterr);
                if (r < 0)
                        return decode_error_at(
                                d,
                                yaml_node_get(yaml_node_get(yaml_node_get(root, "mainstay"),
                                                            "nodeLabels"),
                                              labels->items[i].key),
                                &path, r);
        }
        return 0;
}

/* Rules beyond the table, for the entries of maps. */
static int check_runtimes(const Decoder *d, const YamlNode *root, const Config *config) {
        const DecodePath outer = { .key = "mainstay" };
        const DecodePath map = { .parent = &outer, .key = "runtimes" };
        const YamlNode *nodes = yaml_node_get(yaml_node_get(root, "mainstay"), "runtimes");

        for (size_t i = 0; i < config->mainstay.runtimes.n; i++) {
                const KeyValue *runtime = &config->mainstay.runtimes.items[i];
                const DecodePath path = { .parent = &map, .key = runtime->key, .is_map_key = true };
                int r = check_dns_label(runtime->key, d->reterr);

                if (r >= 0 && !runtime->value[0])
                        r = error_setf(d->reterr, EINVAL, "must be a path or a name");
                if (r < 0)
                        return decode_error_at(d, yaml_node_get(nodes, runtime->key), &path, r);
        }
        return 0;
}

/* The identity of a taint is its key and effect. */
static int check_config_taints(const Decoder *d, const YamlNode *root, const Config *config) {
        const DecodePath list = { .key = "registerWithTaints" };
        const TaintList *taints = &config->register_with_taints;

        for (size_t i = 0; i < taints->n; i++)
                for (size_t j = 0; j < i; j++) {
                        const DecodePath path = { .parent = &list, .index = i };
                        const Taint *a = &taints->items[i], *b = &taints->items[j];

                        if (a->effect != b->effect || !streq(a->key, b->key))
                                continue;
                        return decode_error_at(
                                d, yaml_node_get(root, list.key)->items[i], &path,
                                error_setf(d->reterr, EINVAL,
                                           "must be unique by key and effect; it is also "
                                           "registerWithTaints[%zu]",
                                           j));
                }
        return 0;
}

static const char *explain_shared_object(const SharedObjects *shared, size_t i) {
        const SharedObject *object = &shared->items[i];

        if (object->from == object->to)
                return "must have a 'to' that differs from 'from'";
        if (object_kind_is_cluster_wide(object->kind) != !object->namespace)
                return object->namespace
                               ? "must not have a namespace: objects of this kind have none"
                               : "must have a namespace";
        if (object->kind == OBJECT_PRIORITY_CLASS && object->from == OBJECT_SOURCE_APISERVER)
                return "must not be a PriorityClass from api: a node does not read those of an API "
                       "server";
        for (size_t j = 0; j < i; j++) {
                const SharedObject *other = &shared->items[j];

                if (other->kind == object->kind && other->to == object->to &&
                    streq(other->name, object->name) &&
                    streq_ptr(other->namespace, object->namespace))
                        return "must be unique by kind, namespace, name and 'to'";
        }
        return NULL;
}

static int read_shared_objects(const Decoder *d, const YamlNode *root, Config *config) {
        const DecodePath mainstay = { .key = "mainstay" };
        const DecodePath list = { .parent = &mainstay, .key = "sharedObjects" };
        SharedObjects *shared = &config->mainstay.shared_objects;

        for (size_t i = 0; i < shared->n; i++) {
                const DecodePath path = { .parent = &list, .index = i };
                const YamlNode *items = yaml_node_get(yaml_node_get(root, mainstay.key), list.key);
                const char *problem;

                shared->items[i].kind = (ObjectKind) shared_object_kind(shared->items[i].kind_name);
                problem = explain_shared_object(shared, i);
                if (problem)
                        return decode_error_at(d, items->items[i], &path,
                                               error_setf(d->reterr, EINVAL, "%s", problem));
        }
        return 0;
}

static const char *explain_node_device(const NodeDeviceConfigs *devices, size_t i) {
        const NodeDeviceConfig *device = &devices->items[i];
        const DeviceMatch *match = device->match;

        if (!device->path == !match)
                return "must have either path or match";
        if (match && !match->subsystem && !match->vendor && !match->product && !match->serial &&
            match->properties.n == 0)
                return "must have a condition in match: without one it is every device";
        if (device->is_grouped && device->container_path)
                return "must not have both grouped and containerPath: a group has many nodes";
        for (size_t j = 0; j < i; j++)
                if (streq(devices->items[j].name, device->name))
                        return "must have a unique name";
        return NULL;
}

static int check_node_devices(const Decoder *d, const YamlNode *root, const Config *config) {
        const DecodePath mainstay = { .key = "mainstay" };
        const DecodePath list = { .parent = &mainstay, .key = "devices" };
        const NodeDeviceConfigs *devices = &config->mainstay.devices;

        for (size_t i = 0; i < devices->n; i++) {
                const DecodePath path = { .parent = &list, .index = i };
                const YamlNode *items = yaml_node_get(yaml_node_get(root, mainstay.key), list.key);
                const char *problem = explain_node_device(devices, i);

                if (problem)
                        return decode_error_at(d, items->items[i], &path,
                                               error_setf(d->reterr, EINVAL, "%s", problem));
        }
        return 0;
}

/* As in the kubelet, critical pods get the last part of shutdownGracePeriod,
 * shutdownGracePeriodCriticalPods. */
static void stages_from_grace_period(Config *config) {
        const char *total_text = config->shutdown_grace_period;
        const char *critical_text = config->shutdown_grace_period_critical_pods;
        uint64_t total = SHUTDOWN_TOTAL_SEC * USEC_PER_SEC, critical;

        if (total_text)
                (void) duration_parse(total_text, &total);
        critical = MIN(total, SHUTDOWN_CRITICAL_SEC * USEC_PER_SEC);
        if (critical_text)
                (void) duration_parse(critical_text, &critical);
        else if (total_text) /* without the setting there is no critical part */
                critical = 0;
        if (total == 0)
                return;
        config->shutdown_stages[0] = (ShutdownStage){ 0, total - critical };
        config->shutdown_stages[1] = (ShutdownStage){ SYSTEM_CRITICAL_PRIORITY, critical };
        config->n_shutdown_stages = 2;
}

static int compare_stages(const void *a, const void *b) {
        const ShutdownStage *x = a, *y = b;

        return x->priority < y->priority ? -1 : x->priority > y->priority;
}

static void resolve_shutdown_stages(Config *config) {
        size_t n = config->shutdown_by_priority.n;

        if (n == 0) {
                stages_from_grace_period(config);
                return;
        }
        for (size_t i = 0; i < n; i++)
                config->shutdown_stages[i] = (ShutdownStage){
                        .priority = config->shutdown_by_priority.items[i].priority.value,
                        .period_usec = (uint64_t) config->shutdown_by_priority.items[i]
                                               .shutdown_grace_period_seconds.value *
                                       USEC_PER_SEC,
                };
        qsort(config->shutdown_stages, n, sizeof(ShutdownStage), compare_stages);
        config->n_shutdown_stages = n;
}

static int resolve_image_gc(Config *config, Error *reterr) {
        int64_t high = config->image_gc_high_threshold_percent.value;
        int64_t low = config->image_gc_low_threshold_percent.value;
        int r;

        if (low >= high)
                return error_setf(reterr, EINVAL,
                                  "imageGCLowThresholdPercent must be less than "
                                  "imageGCHighThresholdPercent, %lld is not less than %lld",
                                  (long long) low, (long long) high);
        config->image_gc_high_percent = (unsigned) high;
        config->image_gc_low_percent = (unsigned) low;
        r = duration_parse(config->image_minimum_gc_age, &config->image_gc_min_age_usec);
        if (r < 0 || !config->image_maximum_gc_age)
                return r;
        r = duration_parse(config->image_maximum_gc_age, &config->image_gc_max_age_usec);
        if (r < 0)
                return r;
        if (config->image_gc_max_age_usec <= config->image_gc_min_age_usec)
                return error_setf(reterr, EINVAL,
                                  "imageMaximumGCAge must be greater than imageMinimumGCAge, %s is "
                                  "not greater than %s",
                                  config->image_maximum_gc_age, config->image_minimum_gc_age);
        return 0;
}

/* Uses the kubelet's two settings, unless Mainstay's own is set; if none is set, Mainstay's
 * default. */
static void resolve_parallel_pulls(Config *config) {
        const OptionalInt *max = &config->max_parallel_image_pulls;
        int64_t pulls = PULLS_DEFAULT;

        if (max->is_set)
                pulls = max->value;
        else if (config->serialize_image_pulls.is_set)
                pulls = config->serialize_image_pulls.value ? 1 : PULLS_MAX;
        default_int(&config->mainstay.max_parallel_pulls, pulls);
}

static int resolve_source(SourceConfig *source, Error *reterr) {
        Quantity rate = { 0 };
        int r;

        if (!source)
                return 0;
        r = default_string(&source->interval, "5m");
        if (r < 0)
                return r;
        r = duration_parse(source->interval, &source->interval_usec);
        if (r < 0)
                return r;
        source->jitter_usec = source->interval_usec / 10;
        if (source->jitter) {
                r = duration_parse(source->jitter, &source->jitter_usec);
                if (r < 0)
                        return r;
        }
        if (source->download_rate) {
                r = quantity_parse(source->download_rate, &rate, reterr);
                if (r < 0)
                        return r;
        }
        source->rate_bytes = (uint64_t) rate.value;
        quantity_done(&rate);
        return 0;
}

/* A setting without effect would be a mistake. */
static int check_report(const ReportConfig *report, Error *reterr) {
        bool is_directory = source_stick_path(report->url) != NULL;
        const char *useless = !is_directory           ? NULL
                              : report->ca_file       ? "caFile"
                              : report->headers.n > 0 ? "headers"
                                                      : NULL;

        if (useless)
                return error_setf(reterr, EINVAL,
                                  "mainstay.report.%s: must not be set if url is a directory",
                                  useless);
        if (!is_directory && report->log_lines.value > 0)
                return error_setf(reterr, EINVAL,
                                  "mainstay.report.logLines: needs a url of a directory "
                                  "(file:///…): logs are not sent");
        return 0;
}

static int resolve_report(ReportConfig *report, const SourceConfig *source, Error *reterr) {
        Quantity size = { 0 };
        int r;

        if (!report)
                return 0;
        r = check_report(report, reterr);
        if (r < 0)
                return r;
        r = default_string(&report->interval, "1m");
        if (r < 0)
                return r;
        r = default_string(&report->queue_size, "1Mi");
        if (r < 0)
                return r;
        if (source && source->ca_file) {
                r = default_string(&report->ca_file, source->ca_file);
                if (r < 0)
                        return r;
        }
        r = duration_parse(report->interval, &report->interval_usec);
        if (r < 0)
                return r;
        report->jitter_usec = report->interval_usec / 10;
        if (report->jitter) {
                r = duration_parse(report->jitter, &report->jitter_usec);
                if (r < 0)
                        return r;
        }
        r = quantity_parse(report->queue_size, &size, reterr);
        if (r < 0)
                return r;
        report->queue_bytes = (uint64_t) size.value;
        quantity_done(&size);
        return 0;
}

/* The texts were validated by the table, or are defaults. */
static int config_resolve(Config *config, Error *reterr) {
        const char *period = config->crash_loop_back_off.max_container_restart_period;
        Quantity size = { 0 };
        int r;

        r = quantity_parse(config->container_log_max_size, &size, reterr);
        if (r < 0)
                return r;
        config->log_max_size_bytes = (uint64_t) size.value;
        quantity_done(&size);
        r = duration_parse(period, &config->back_off_max_usec);
        if (r < 0)
                return r;
        r = duration_parse(config->http_check_frequency, &config->http_check_usec);
        if (r < 0)
                return r;
        r = resolve_source(config->mainstay.source, reterr);
        if (r < 0)
                return r;
        r = resolve_report(config->mainstay.report, config->mainstay.source, reterr);
        if (r < 0)
                return r;
        resolve_shutdown_stages(config);
        resolve_parallel_pulls(config);
        config->back_off_initial_usec =
                MIN(config->back_off_max_usec, BACK_OFF_INITIAL_SEC * USEC_PER_SEC);
        return resolve_image_gc(config, reterr);
}

static int check_shutdown(const Decoder *d, const YamlNode *root, const Config *config) {
        const char *const keys[] = { "shutdownGracePeriodByPodPriority",
                                     "shutdownGracePeriodCriticalPods" };
        DecodePath path = { .key = keys[0] };
        uint64_t total = 0, critical = 0;
        int r = 0;

        if (config->shutdown_by_priority.n > SHUTDOWN_STAGES_MAX)
                r = error_setf(d->reterr, EINVAL, "must have at most %d items",
                               SHUTDOWN_STAGES_MAX);
        else if (config->shutdown_by_priority.n > 0 &&
                 (config->shutdown_grace_period || config->shutdown_grace_period_critical_pods))
                r = error_setf(d->reterr, EINVAL,
                               "Cannot specify both shutdownGracePeriodByPodPriority and "
                               "shutdownGracePeriod at the same time");
        if (r < 0)
                return decode_error_at(d, yaml_node_get(root, keys[0]), &path, r);
        if (!config->shutdown_grace_period_critical_pods)
                return 0;
        (void) duration_parse(config->shutdown_grace_period_critical_pods, &critical);
        if (config->shutdown_grace_period)
                (void) duration_parse(config->shutdown_grace_period, &total);
        if (critical <= total)
                return 0;
        path.key = keys[1];
        r = error_setf(d->reterr, EINVAL, "must be <= shutdownGracePeriod");
        return decode_error_at(d, yaml_node_get(root, keys[1]), &path, r);
}

static int check_credentials_policy(const Decoder *d, const YamlNode *root, const Config *config) {
        const DecodePath path = { .key = "preloadedImagesVerificationAllowlist" };
        int r;

        if (!config->preloaded_images_allowlist ||
            config->image_credentials_policy == CREDENTIALS_NEVER_OF_ALLOWLISTED)
                return 0;
        r = error_setf(d->reterr, EINVAL,
                       "needs imagePullCredentialsVerificationPolicy: "
                       "NeverVerifyAllowlistedImages");
        return decode_error_at(d, yaml_node_get(root, path.key), &path, r);
}

static int check_pulls(const Decoder *d, const YamlNode *root, const Config *config) {
        const OptionalInt *max = &config->max_parallel_image_pulls;
        const OptionalBool *serialize = &config->serialize_image_pulls;
        const OptionalInt *own = &config->mainstay.max_parallel_pulls;
        const char *key = max->is_set ? "maxParallelImagePulls" : "serializeImagePulls";
        bool is_serial = serialize->is_set && serialize->value;
        const DecodePath path = { .key = key };
        int r = 0;

        if (max->is_set && max->value > 1 && is_serial)
                r = error_setf(d->reterr, EINVAL,
                               "cannot be larger than 1 unless serializeImagePulls is false");
        else if (own->is_set &&
                 ((max->is_set && max->value != own->value) || (is_serial && own->value > 1)))
                r = error_setf(d->reterr, EINVAL,
                               "contradicts mainstay.maxParallelPulls, which is %lld",
                               (long long) own->value);
        return r < 0 ? decode_error_at(d, yaml_node_get(root, key), &path, r) : 0;
}

/* A kubelet serves this port without TLS, to unauthenticated clients. */
static int check_read_only_port(Decoder *d, const YamlNode *root, const Config *config) {
        const DecodePath path = { .key = "readOnlyPort" };
        int r;

        if (config->read_only_port.value == 0)
                return 0;
        r = decode_note_without_effect(d, path.key);
        if (r < 0)
                return r;
        return decode_warn(d, yaml_node_get(root, path.key), &path,
                           "is not served, because its clients are not authenticated; "
                           "mainstay-api serves the same paths with TLS");
}

static int expect_config_value(const Decoder *d, const YamlNode *root, const char *key,
                               const char *expected) {
        const DecodePath path = { .key = key };
        const YamlNode *value = yaml_node_get(root, key);
        char text[DESCRIPTION_SIZE];
        int r;

        if (!value || yaml_node_is_empty(value) ||
            (value->kind == YAML_NODE_STRING && streq(value->text, expected)))
                return 0;
        r = error_setf(d->reterr, EINVAL, "must be %s, not %s", expected,
                       yaml_node_describe(value, text));
        return decode_error_at(d, value, &path, r);
}

static int decode_config(Decoder *d, const YamlNode *root, Config *config) {
        int r;

        if (!root)
                return config_read_eviction(d, NULL, config);
        r = decode_object(d, root, &config_schema, NULL, config);
        if (r < 0)
                return r;
        unset_zero_durations(config);
        if (config->mainstay.runtimes.n > 0)
                r = check_runtimes(d, root, config);
        if (r < 0)
                return r;
        r = check_node_labels(d, root, config);
        if (r < 0)
                return r;
        r = check_config_taints(d, root, config);
        if (r < 0)
                return r;
        r = read_shared_objects(d, root, config);
        if (r < 0)
                return r;
        r = check_node_devices(d, root, config);
        if (r < 0)
                return r;
        r = config_read_pod_cidrs(d, root, config);
        if (r < 0)
                return r;
        r = check_shutdown(d, root, config);
        if (r < 0)
                return r;
        r = check_pulls(d, root, config);
        if (r < 0)
                return r;
        r = check_credentials_policy(d, root, config);
        if (r < 0)
                return r;
        r = check_read_only_port(d, root, config);
        if (r < 0)
                return r;
        r = config_read_reserved(d, root, config);
        if (r < 0)
                return r;
        return config_read_eviction(d, root, config);
}

/* ---- files ---- */

/* The trees of all configuration files, which own the nodes of the merged tree. */
typedef struct ConfigTrees {
        YamlTree *trees;
        size_t n;
} ConfigTrees;

static void config_trees_done(ConfigTrees *trees) {
        for (size_t i = 0; i < trees->n; i++)
                yaml_tree_done(&trees->trees[i]);
        free(trees->trees);
}

static int read_file_of_config(const char *path, char **ret, size_t *ret_length, Error *reterr) {
        int r = read_file_at(AT_FDCWD, path, CONFIG_BYTES_MAX, ret, ret_length);

        if (r < 0)
                return error_setf(reterr, -r, "%s: %s", path, strerror(-r));
        /* An editor leaves an empty file for a moment; a power failure leaves one permanently. */
        if (*ret_length == 0)
                return error_setf(reterr, ENODATA,
                                  "%s: the file is empty (for the defaults remove it, or write "
                                  "'{}' into it)",
                                  path);
        return 0;
}

/* The only document of a file; NULL: it has none. */
static int parse_config_file(Decoder *d, size_t source, ConfigTrees *trees, const YamlNode **ret) {
        const char *path = d->files[source];
        YamlTree *tree = &trees->trees[trees->n];
        cleanup_free char *data = NULL;
        size_t length;
        int r;

        r = read_file_of_config(path, &data, &length, d->reterr);
        if (r >= 0)
                r = yaml_tree_parse_source(path, (uint32_t) source, data, length, tree, d->reterr);
        if (r < 0)
                return r;
        trees->n++;
        if (tree->n_documents > 1)
                return error_setf(d->reterr, EINVAL, "%s: must hold one document, not %zu", path,
                                  tree->n_documents);
        *ret = tree->n_documents == 1 && tree->documents[0]->kind != YAML_NODE_NULL
                       ? tree->documents[0]
                       : NULL;
        return 0;
}

/* In the first file, kind and apiVersion may be absent. */
static int check_config_kind(const Decoder *d, const YamlNode *root) {
        int r = expect_config_value(d, root, "apiVersion", CONFIG_VERSION);

        return r < 0 ? r : expect_config_value(d, root, "kind", CONFIG_KIND);
}

static int merge_dropin(Decoder *d, size_t source, ConfigTrees *trees, const YamlNode **root) {
        const YamlNode *patch;
        int r = parse_config_file(d, source, trees, &patch);

        if (r < 0)
                return r;
        if (!patch || !yaml_node_get(patch, "apiVersion") || !yaml_node_get(patch, "kind"))
                return error_setf(d->reterr, EINVAL,
                                  "%s: a drop-in must have 'apiVersion: %s' and 'kind: %s'",
                                  d->files[source], CONFIG_VERSION, CONFIG_KIND);
        r = check_config_kind(d, patch);
        if (r < 0)
                return r;
        return yaml_tree_merge_patch(&trees->trees[trees->n - 1], *root, patch, root);
}

/* 'd->files' are the file, which may be missing, and the drop-ins. */
static int parse_config(Decoder *d, bool has_file, Config *config) {
        cleanup_with(config_trees_done) ConfigTrees trees = { 0 };
        size_t n = strv_length(d->files);
        const YamlNode *root = NULL;
        int r = 0;

        trees.trees = calloc(n, sizeof(*trees.trees));
        if (!trees.trees)
                return -ENOMEM;
        if (has_file)
                r = parse_config_file(d, 0, &trees, &root);
        if (r >= 0 && root)
                r = check_config_kind(d, root);
        for (size_t i = 1; r >= 0 && i < n; i++)
                r = merge_dropin(d, i, &trees, &root);
        return r < 0 ? r : decode_config(d, root, config);
}

static int complete_config(Decoder *d, Config *config, char ***ret_warnings) {
        int r = config_set_defaults(config);

        if (r < 0)
                return r;
        r = config_resolve(config, d->reterr);
        if (r < 0)
                return r;
        config->without_effect = TAKE_PTR(d->without_effect);
        return decode_take_warnings(d, ret_warnings);
}

static int load_merged_config(Decoder *d, bool has_file, Config *ret, char ***ret_warnings) {
        cleanup_with(config_done) Config config = { 0 };
        int r = parse_config(d, has_file, &config);

        if (r >= 0)
                r = complete_config(d, &config, ret_warnings);
        strv_free(d->warnings);
        free(d->without_effect);
        if (r < 0)
                return r;
        *ret = config;
        config = (Config){ 0 };
        return 0;
}

static int warn_of_skipped_files(const ConfigDropins *dropins, const char *directory,
                                 char ***warnings) {
        cleanup_free char *names = dropins->skipped ? text_join(dropins->skipped, ", ") : NULL;

        if (!dropins->skipped)
                return 0;
        return names ? strv_appendf(warnings,
                                    "%s: ignoring files, because their names do not end with "
                                    ".conf: %s",
                                    directory, names)
                     : -ENOMEM;
}

static int list_files_of_config(const ConfigFiles *files, char ***ret, char ***warnings,
                                Error *reterr) {
        cleanup_with(config_dropins_done) ConfigDropins dropins = { 0 };
        int r = strv_append(ret, files->file);

        if (r < 0 || !files->directory)
                return r;
        r = config_dropins_list(files->directory, &dropins, reterr);
        if (r < 0)
                return r;
        if (!dropins.directories && files->needs_directory)
                return error_setf(reterr, ENOENT, "%s: the directory of drop-ins is missing",
                                  files->directory);
        r = strv_extend(ret, dropins.files);
        return r < 0 ? r : warn_of_skipped_files(&dropins, files->directory, warnings);
}

int config_files_load(const ConfigFiles *files, Config *ret, char ***ret_warnings, Error *reterr) {
        Decoder decoder = { .file = files->file, .mode = DECODE_CONFIG, .reterr = reterr };
        cleanup_strv char **paths = NULL;
        bool has_file = access(files->file, F_OK) >= 0;
        int r;

        if (!has_file && (errno != ENOENT || files->needs_file))
                return error_setf(reterr, errno, "%s: %s", files->file, strerror(errno));
        r = list_files_of_config(files, &paths, &decoder.warnings, reterr);
        if (r < 0) {
                strv_free(decoder.warnings);
                return r;
        }
        decoder.files = paths;
        return load_merged_config(&decoder, has_file, ret, ret_warnings);
}

int kubelet_config_load(const char *path, Config *ret, char ***ret_warnings, Error *reterr) {
        return config_files_load(&(ConfigFiles){ .file = path }, ret, ret_warnings, reterr);
}
