/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/stats/stats-provider.h"

#include "agent/metrics/cadvisor-metrics.h"
#include "agent/metrics/running-pods.h"
#include "agent/metrics/stats-summary.h"
#include "agent/metrics/volume-metrics.h"
#include "agent/pods/stats/usage-collect.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>

/* The interval of cAdvisor's measurements. */
#define USAGE_PERIOD_USEC (10 * USEC_PER_SEC)

void stats_provider_done(StatsProvider *stats) {
        cpu_rates_free(stats->cpu_rates);
        storage_usage_free(stats->storage_usage);
        system_containers_done(&stats->system);
}

/* The first request creates the state that outlives requests. */
static int prepare_storage(StatsProvider *stats) {
        return stats->storage_usage
                       ? 0
                       : storage_usage_new(stats->event, stats->bundle, stats->sandbox->shim_path,
                                           &stats->storage_usage);
}

static const SystemContainers *find_system_containers(StatsProvider *stats) {
        system_containers_find(&stats->system, stats->bundle, stats->sandbox, stats->started_at);
        return &stats->system;
}

/* ---- the summary ---- */

static void add_summary_usage(const UsageSample *sample, void *userdata) {
        stats_summary_add(userdata, sample);
}

static void add_summary_storage(const StorageSample *sample, const FilesystemUsage *filesystem,
                                void *userdata) {
        stats_summary_add_storage(userdata, sample, filesystem);
}

static int prepare_summary(StatsProvider *stats, bool has_all) {
        if (!stats->cpu_rates)
                stats->cpu_rates = cpu_rates_new();
        if (!stats->cpu_rates)
                return -ENOMEM;
        return has_all ? prepare_storage(stats) : 0;
}

char *stats_provider_summary(StatsProvider *stats, const NodeStats *node) {
        cleanup_with(stats_summary_freep) StatsSummary *summary = NULL;
        UsageVisitor visitor = { .on_usage = add_summary_usage,
                                 .on_storage = node ? add_summary_storage : NULL,
                                 .has_network = node };

        if (prepare_summary(stats, node) < 0)
                return NULL;
        visitor.storage = stats->storage_usage;
        visitor.system = find_system_containers(stats);
        summary = stats_summary_new(stats->node_name, stats->cpu_rates, node);
        visitor.userdata = summary;
        visitor.csi = stats->csi;
        if (!summary || collect_usage(stats->pods, stats->bundle, &visitor) < 0)
                return NULL;
        cpu_rates_forget_old(stats->cpu_rates);
        if (node) {
                stats_summary_set_filesystems(summary, &node->filesystem, &node->image_filesystem);
                stats_summary_set_pids(summary, node->pids_max, node->pids);
                storage_usage_refresh(stats->storage_usage, stats->pods);
        }
        return stats_summary_format(summary);
}

/* ---- cAdvisor's metrics ---- */

static void add_cadvisor_sample(const UsageSample *sample, void *userdata) {
        (void) cadvisor_metrics_add(userdata, sample);
}

static void add_cadvisor_storage(const StorageSample *sample, const FilesystemUsage *filesystem,
                                 void *userdata) {
        cadvisor_metrics_add_storage(userdata, sample, filesystem);
}

static CadvisorMachine describe_machine(const BundleConfig *bundle) {
        CadvisorMachine machine = { .n_cpus = (unsigned) (bundle->cpu_capacity_milli / 1000),
                                    .memory_bytes = (uint64_t) bundle->memory_capacity };
        struct stat st;

        read_filesystem_usage(bundle->state_dir, &machine.filesystem);
        if (stat(bundle->state_dir, &st) >= 0)
                machine.device =
                        (DiskUsage){ .major = major(st.st_dev), .minor = minor(st.st_dev) };
        machine.disk = disk_of_partition(&machine.device);
        return machine;
}

/* For the next request, because counting and measuring take a while. */
static void refresh_usages(StatsProvider *stats) {
        uint64_t now = now_boottime_usec();

        storage_usage_refresh(stats->storage_usage, stats->pods);
        if (stats->usage_asked_at > 0 && now - stats->usage_asked_at < USAGE_PERIOD_USEC)
                return;
        stats->usage_asked_at = now;
        pod_manager_request_usage(stats->pods);
}

char *stats_provider_cadvisor_metrics(StatsProvider *stats) {
        cleanup_with(cadvisor_metrics_freep) CadvisorMetrics *metrics = cadvisor_metrics_new();
        const CadvisorMachine machine = describe_machine(stats->bundle);
        UsageVisitor visitor = { .on_usage = add_cadvisor_sample,
                                 .on_storage = add_cadvisor_storage,
                                 .has_network = true,
                                 .has_details = true,
                                 .userdata = metrics };

        if (!metrics || prepare_storage(stats) < 0)
                return NULL;
        visitor.storage = stats->storage_usage;
        visitor.system = find_system_containers(stats);
        if (collect_usage(stats->pods, stats->bundle, &visitor) < 0)
                return NULL;
        refresh_usages(stats);
        return cadvisor_metrics_format(metrics, &machine);
}

/* ---- the metrics of claims ---- */

typedef struct VolumeMetricsWalk {
        const StatsProvider *stats;
        VolumeMetrics *metrics;
} VolumeMetricsWalk;

static int add_volume_metrics(const Pod *pod, const PodStatus *status, void *userdata) {
        const VolumeMetricsWalk *walk = userdata;

        for (size_t i = 0; i < pod->spec.volumes.n; i++) {
                cleanup_free char *claim = NULL;
                FilesystemUsage filesystem;
                StorageSample sample;

                if (read_csi_usage(walk->stats->csi, walk->stats->bundle, pod,
                                   &pod->spec.volumes.items[i], &sample, &filesystem, &claim) &&
                    claim && volume_metrics_add(walk->metrics, &sample, &filesystem) < 0)
                        return -ENOMEM;
        }
        return 0;
}

char *stats_provider_volume_metrics(const StatsProvider *stats) {
        cleanup_with(volume_metrics_freep) VolumeMetrics *metrics = volume_metrics_new();
        VolumeMetricsWalk walk = { stats, metrics };

        if (!metrics || pod_manager_for_each_pod(stats->pods, add_volume_metrics, &walk) < 0)
                return NULL;
        return volume_metrics_format(metrics);
}

/* ---- running pods ---- */

char *stats_provider_running_pods(const StatsProvider *stats) {
        cleanup_with(running_pods_freep) RunningPods *running = running_pods_new();

        if (!running || pod_manager_for_each_pod(stats->pods, running_pods_add, running) < 0)
                return NULL;
        return running_pods_format(running);
}
