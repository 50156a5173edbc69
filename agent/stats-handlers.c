/* SPDX-License-Identifier: Apache-2.0 */

/* What the kubelet reports of itself and its pods: usage, running pods, the configuration. */

#include "agent/stats-handlers.h"

#include "agent/eviction/signal-observations.h"
#include "agent/metrics/cadvisor-metrics.h"
#include "agent/metrics/stats-summary.h"
#include "agent/model/json.h"
#include "agent/pods/usage-collect.h"
#include "agent/wiring.h"
#include "common/cleanup.h"

#include <jansson.h>
#include <stdlib.h>

/* ---- metrics ---- */

static void collect_probe_sample(const ProbeSample *sample, void *userdata) {
        ProbeSampleList *list = userdata;
        ProbeSample *more = reallocarray(list->items, list->n + 1, sizeof(*more));

        if (!more)
                return;
        list->items = more;
        list->items[list->n++] = *sample;
}

ProbeSampleList agent_collect_probe_samples(Agent *agent) {
        ProbeSampleList samples = { 0 };

        pod_manager_for_each_probe(agent->pod_manager, collect_probe_sample, &samples);
        return samples;
}

char *agent_get_probe_metrics(void *userdata) {
        ProbeSampleList samples = agent_collect_probe_samples(userdata);
        char *text = probe_metrics_format(samples.items, samples.n);

        free(samples.items);
        return text;
}

static void add_cadvisor_sample(const UsageSample *sample, void *userdata) {
        (void) cadvisor_metrics_add(userdata, sample);
}

char *agent_get_cadvisor_metrics(void *userdata) {
        Agent *agent = userdata;
        cleanup_with(cadvisor_metrics_freep) CadvisorMetrics *metrics = cadvisor_metrics_new();

        if (!metrics || collect_usage(agent->pod_manager, &agent->bundle_config,
                                      &(UsageVisitor){ .on_usage = add_cadvisor_sample,
                                                       .has_network = true,
                                                       .userdata = metrics }) < 0)
                return NULL;
        return cadvisor_metrics_format(metrics, agent->node.n_cpus,
                                       (uint64_t) agent->node.memory_capacity);
}

/* ---- the summary ---- */

static void add_summary_usage(const UsageSample *sample, void *userdata) {
        stats_summary_add(userdata, sample);
}

static void add_summary_storage(const StorageSample *sample, const FilesystemUsage *filesystem,
                                void *userdata) {
        stats_summary_add_storage(userdata, sample, filesystem);
}

static FilesystemUsage describe_filesystem(const SignalObservation *bytes,
                                           const SignalObservation *inodes) {
        return (FilesystemUsage){ .capacity = (uint64_t) bytes->capacity,
                                  .available = (uint64_t) bytes->available,
                                  .used = (uint64_t) (bytes->capacity - bytes->available),
                                  .inodes = (uint64_t) inodes->capacity,
                                  .inodes_free = (uint64_t) inodes->available };
}

static void add_node_storage(const Agent *agent, StatsSummary *summary) {
        SignalObservations now;
        const SignalObservation *pids = &now.of[EVICTION_PIDS];
        FilesystemUsage node, images;

        observe_eviction_signals(&(ObservedPaths){ .state_dir = agent->state_dir,
                                                   .images_dir = image_store_path(agent->images) },
                                 &now);
        node = describe_filesystem(&now.of[EVICTION_NODE_FS], &now.of[EVICTION_NODE_FS_INODES]);
        images = describe_filesystem(&now.of[EVICTION_IMAGE_FS], &now.of[EVICTION_IMAGE_FS_INODES]);
        stats_summary_set_filesystems(summary, &node, &images);
        stats_summary_set_pids(summary, (uint64_t) pids->capacity,
                               (uint64_t) (pids->capacity - pids->available));
}

/* What outlives a request is made by the first one. */
static int prepare_summary(Agent *agent, bool has_all) {
        if (!agent->cpu_rates)
                agent->cpu_rates = cpu_rates_new();
        if (!agent->cpu_rates)
                return -ENOMEM;
        if (has_all && !agent->storage_usage &&
            storage_usage_new(agent->event, &agent->bundle_config, agent->shim_path,
                              &agent->storage_usage) < 0)
                return -ENOMEM;
        return 0;
}

char *agent_get_stats_summary(void *userdata, bool only_cpu_and_memory) {
        Agent *agent = userdata;
        bool has_all = !only_cpu_and_memory;
        cleanup_with(stats_summary_freep) StatsSummary *summary = NULL;
        UsageVisitor visitor = { .on_usage = add_summary_usage,
                                 .on_storage = has_all ? add_summary_storage : NULL,
                                 .has_network = has_all };

        if (prepare_summary(agent, has_all) < 0)
                return NULL;
        visitor.storage = agent->storage_usage;
        summary = stats_summary_new(agent->node.name, agent->cpu_rates, has_all);
        visitor.userdata = summary;
        if (!summary || collect_usage(agent->pod_manager, &agent->bundle_config, &visitor) < 0)
                return NULL;
        cpu_rates_forget_old(agent->cpu_rates);
        if (has_all) {
                add_node_storage(agent, summary);
                storage_usage_refresh(agent->storage_usage, agent->pod_manager);
        }
        return stats_summary_format(summary);
}

/* ---- running pods ---- */

static json_t *list_running_containers(const ContainerStatusList *init,
                                       const ContainerStatusList *containers) {
        const ContainerStatusList *const lists[] = { init, containers };
        json_t *json = json_array();

        for (size_t l = 0; l < N_ELEMENTS(lists); l++)
                for (size_t i = 0; i < lists[l]->n; i++) {
                        const ContainerStatus *status = &lists[l]->items[i];

                        if (status->state.kind == STATE_RUNNING)
                                (void) json_array_append_new(
                                        json, json_pack("{s:s, s:s*, s:{}}", "name", status->name,
                                                        "image", status->image, "resources"));
                }
        return json;
}

static int add_running_pod(const Pod *pod, const PodStatus *status, void *userdata) {
        json_t *containers = list_running_containers(&status->init_containers, &status->containers);

        if (json_array_size(containers) == 0) {
                json_decref(containers);
                return 0;
        }
        return json_array_append_new(userdata,
                                     json_pack("{s:{s:s, s:s, s:s, s:n}, s:{s:o}, s:{}}",
                                               "metadata", "name", pod->metadata.name, "namespace",
                                               pod->metadata.namespace, "uid", pod->metadata.uid,
                                               "creationTimestamp", "spec", "containers",
                                               containers, "status")) < 0
                       ? -ENOMEM
                       : 0;
}

char *agent_list_running_pods(void *userdata) {
        const Agent *agent = userdata;
        cleanup_with(json_decrefp) json_t *list =
                json_pack("{s:s, s:s, s:{}, s:[]}", "kind", "PodList", "apiVersion", "v1",
                          "metadata", "items");

        if (!list || pod_manager_for_each_pod(agent->pod_manager, add_running_pod,
                                              json_object_get(list, "items")) < 0)
                return NULL;
        return json_dumps(list, JSON_COMPACT);
}

/* ---- the configuration ---- */

/* The section "mainstay" is none of a KubeletConfiguration, and its addresses of proxies may hold
 * passwords. */
char *agent_print_configuration(void *userdata) {
        const Agent *agent = userdata;
        cleanup_free char *text = object_to_json(&config_schema, &agent->config);
        cleanup_with(json_decrefp) json_t *json = NULL;
        json_t *config = text ? json_loads(text, 0, NULL) : NULL;

        if (!config)
                return NULL;
        (void) json_object_del(config, "mainstay");
        (void) json_object_set_new(config, "kind", json_string("KubeletConfiguration"));
        (void) json_object_set_new(config, "apiVersion",
                                   json_string("kubelet.config.k8s.io/v1beta1"));
        json = json_pack("{s:o}", "kubeletconfig", config);
        return json ? json_dumps(json, JSON_COMPACT) : NULL;
}
