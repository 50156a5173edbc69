/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/stats/metrics-collect.h"

#include "agent/bundle/cgroups.h"
#include "agent/metrics/resource-metrics.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

char *format_pod_key(const Pod *pod) {
        return text_format("%s/%s/%s", pod->metadata.namespace, pod->metadata.name,
                           pod->metadata.uid);
}

/* ---- counts ---- */

static void count_container_state(const ContainerStatus *container, AgentMetrics *counts) {
        switch (container->state.kind) {
        case STATE_RUNNING:
                counts->containers_running++;
                break;
        case STATE_TERMINATED:
                counts->containers_exited++;
                break;
        case STATE_WAITING:
        case STATE_NONE:
                counts->containers_created++;
                break;
        }
}

static int count_running_pod(const Pod *pod, const PodStatus *status, void *userdata) {
        const ContainerStatusList *lists[] = { &status->init_containers, &status->containers,
                                               &status->ephemeral_containers };
        AgentMetrics *counts = userdata;

        counts->pods_running += status->phase == POD_RUNNING;
        for (size_t l = 0; l < N_ELEMENTS(lists); l++)
                for (size_t i = 0; i < lists[l]->n; i++)
                        count_container_state(&lists[l]->items[i], counts);
        return 0;
}

static void count_broken_archive(const char *archive, const char *message, void *userdata) {
        AgentMetrics *counts = userdata;

        counts->archives_broken++;
}

AgentMetrics collect_agent_counts(const char *node_name, PodManager *pod_manager,
                                  const ManifestDirectory *sources, ImageStore *images) {
        PodManagerCounts totals = pod_manager_counts(pod_manager);
        const Manifest *const *manifests;
        size_t n = manifest_directory_list(sources, &manifests);
        AgentMetrics counts = {
                .node_name = node_name,
                .pods_desired = totals.pods_desired,
                .pods = totals.pods,
                .pods_started = totals.pods_started,
                .user_pods_started = totals.user_pods_started,
                .containers_started = totals.containers_started,
                .containers_restarted = totals.containers_restarted,
                .containers_start_errors = totals.containers_start_errors,
                .manifest_directory_error = manifest_directory_last_error(sources),
        };

        memcpy(counts.preemptions, totals.preemptions, sizeof(counts.preemptions));
        for (size_t i = 0; i < n; i++) {
                if (!manifests[i]->error)
                        continue;
                counts.manifests_broken++;
                if (!counts.manifest_error)
                        counts.manifest_error = manifests[i]->error;
        }
        image_store_foreach_archive_error(images, count_broken_archive, &counts);
        (void) pod_manager_for_each_pod(pod_manager, count_running_pod, &counts);
        return counts;
}

/* ---- probes ---- */

typedef LIST_OF(ProbeSample) ProbeSampleList;

static void collect_probe_sample(const ProbeSample *sample, void *userdata) {
        ProbeSampleList *list = userdata;
        ProbeSample *copy = ARRAY_APPEND(list->items, list->n);

        if (copy)
                *copy = *sample;
}

char *collect_probe_metrics(const PodManager *pod_manager) {
        ProbeSampleList samples = { 0 };
        char *text;

        pod_manager_for_each_probe(pod_manager, collect_probe_sample, &samples);
        text = probe_metrics_format(samples.items, samples.n);
        free(samples.items);
        return text;
}

char *collect_agent_metrics(const PodManager *pod_manager, AgentMetrics counts) {
        ProbeSampleList samples = { 0 };
        char *text;

        pod_manager_for_each_probe(pod_manager, collect_probe_sample, &samples);
        counts.probes = samples.items;
        counts.n_probes = samples.n;
        text = agent_metrics_format(&counts);
        free(samples.items);
        return text;
}

/* ---- resource usage ---- */

static void add_container_usage(ResourceMetrics *usage, const Pod *pod, const char *pod_group,
                                const ContainerStatus *status) {
        static const char scheme[] = "mainstay://";
        cleanup_free char *group = NULL;
        CgroupUsage used;

        if (status->state.kind != STATE_RUNNING || !status->container_id ||
            strncmp(status->container_id, scheme, strlen(scheme)) != 0)
                return;
        group = cgroup_of_container(pod_group, status->container_id + strlen(scheme));
        if (group && cgroup_usage(group, &used) >= 0)
                resource_metrics_add(usage, pod->metadata.namespace, pod->metadata.name,
                                     status->name, status->state.started_at, &used);
        else
                resource_metrics_set_scrape_error(usage);
}

/* The sum to which each pod's usage is added. */
typedef struct PodUsageWalk {
        const BundleConfig *config;
        ResourceMetrics *usage;
} PodUsageWalk;

static int add_pod_usage(const Pod *pod, const PodStatus *status, void *userdata) {
        const ContainerStatusList *lists[] = { &status->containers, &status->init_containers,
                                               &status->ephemeral_containers };
        const PodUsageWalk *walk = userdata;
        cleanup_free char *group =
                cgroup_of_pod(walk->config, pod_qos_class(&pod->spec), pod->metadata.uid);
        CgroupUsage used;

        if (!group || cgroup_usage(group, &used) < 0)
                return 0; /* it has no sandbox yet, or no longer */
        resource_metrics_add(walk->usage, pod->metadata.namespace, pod->metadata.name, NULL, 0,
                             &used);
        for (size_t l = 0; l < N_ELEMENTS(lists); l++)
                for (size_t i = 0; i < lists[l]->n; i++)
                        add_container_usage(walk->usage, pod, group, &lists[l]->items[i]);
        return 0;
}

char *collect_resource_usage(PodManager *pod_manager, const BundleConfig *config) {
        cleanup_with(resource_metrics_freep) ResourceMetrics *usage = resource_metrics_new();
        PodUsageWalk walk = { .config = config, .usage = usage };
        CgroupUsage used;

        if (!usage)
                return NULL;
        if (cgroup_usage("/", &used) >= 0)
                resource_metrics_add(usage, NULL, NULL, NULL, 0, &used);
        (void) pod_manager_for_each_pod(pod_manager, add_pod_usage, &walk);
        return resource_metrics_format(usage);
}
