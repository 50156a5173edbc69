/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/metrics/stats-summary.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"

#include <jansson.h>

struct StatsSummary {
        json_t *json, *node, *pods;
        json_t *pod, *container; /* the pod that was added last; borrowed; NULL: it was omitted */
        uint64_t n_processes;    /* number of processes in that pod's containers */
        CpuRates *rates;
        bool has_all;
};

StatsSummary *stats_summary_free(StatsSummary *summary) {
        if (!summary)
                return NULL;
        json_decref(summary->json);
        free(summary);
        return NULL;
}

StatsSummary *stats_summary_new(const char *node_name, CpuRates *rates, bool has_all) {
        cleanup_with(stats_summary_freep) StatsSummary *summary = calloc(1, sizeof(*summary));

        if (!summary)
                return NULL;
        summary->rates = rates;
        summary->has_all = has_all;
        summary->json = json_pack("{s:{s:s}, s:[]}", "node", "nodeName", node_name, "pods");
        summary->node = json_object_get(summary->json, "node");
        summary->pods = json_object_get(summary->json, "pods");
        return summary->json ? TAKE_PTR(summary) : NULL;
}

static void set_stats_time(json_t *json, const char *name, uint64_t realtime) {
        char buffer[RFC3339_SIZE];

        (void) json_object_set_new(json, name, json_string(format_rfc3339(buffer, realtime)));
}

static void set_stats_number(json_t *json, const char *name, uint64_t number) {
        (void) json_object_set_new(json, name,
                                   json_integer((json_int_t) MIN(number, (uint64_t) INT64_MAX)));
}

/* An object with its time, owned by 'json'. */
static json_t *add_stats_group(json_t *json, const char *name, uint64_t taken_at) {
        json_t *group = json_object();

        set_stats_time(group, "time", taken_at);
        return json_object_set_new(json, name, group) < 0 ? NULL : group;
}

/* The totals are in microseconds, as in the kubelet, despite its documentation. */
static json_t *format_pressure_share(const PressureShare *share) {
        return json_pack("{s:I, s:f, s:f, s:f}", "total", (json_int_t) share->total_usec, "avg10",
                         share->avg10, "avg60", share->avg60, "avg300", share->avg300);
}

static void add_pressure_stats(json_t *group, const Pressure *pressure) {
        if (pressure->is_known)
                (void) json_object_set_new(group, "psi",
                                           json_pack("{s:o, s:o}", "full",
                                                     format_pressure_share(&pressure->full), "some",
                                                     format_pressure_share(&pressure->some)));
}

static void add_io_stats(json_t *json, const UsageSample *sample) {
        const CgroupStatistics *s = &sample->statistics;

        if (s->io_pressure.is_known)
                add_pressure_stats(add_stats_group(json, "io", s->usage.taken_at), &s->io_pressure);
}

/* The cgroup of a system container may be older than its known start. */
static uint64_t start_of_rate(const UsageSample *sample) {
        return sample->system ? now_realtime_usec() - now_boottime_usec() : sample->started_at;
}

static void add_memory_numbers(json_t *memory, const CgroupStatistics *s) {
        if (s->memory_limit > 0)
                set_stats_number(memory, "availableBytes",
                                 s->memory_limit -
                                         MIN(s->memory_limit, s->usage.working_set_bytes));
        set_stats_number(memory, "usageBytes", s->memory_bytes);
        set_stats_number(memory, "workingSetBytes", s->usage.working_set_bytes);
        set_stats_number(memory, "rssBytes", s->rss_bytes);
        set_stats_number(memory, "pageFaults", s->page_faults);
        set_stats_number(memory, "majorPageFaults", s->major_page_faults);
        add_pressure_stats(memory, &s->memory_pressure);
}

static void add_cpu_and_memory(StatsSummary *summary, json_t *json, const UsageSample *sample) {
        const CgroupStatistics *s = &sample->statistics;
        json_t *cpu = add_stats_group(json, "cpu", s->usage.taken_at);

        set_stats_number(
                cpu, "usageNanoCores",
                cpu_rates_update(summary->rates, sample->cgroup, &s->usage, start_of_rate(sample)));
        set_stats_number(cpu, "usageCoreNanoSeconds", s->usage.cpu_nsec);
        add_pressure_stats(cpu, &s->cpu_pressure);
        if (!s->usage.lacks_memory)
                add_memory_numbers(add_stats_group(json, "memory", s->usage.taken_at), s);
}

static void set_interface_numbers(json_t *json, const NetworkInterfaceUsage *interface) {
        (void) json_object_set_new(json, "name", json_string(interface->name));
        set_stats_number(json, "rxBytes", interface->rx_bytes);
        set_stats_number(json, "rxErrors", interface->rx_errors);
        set_stats_number(json, "txBytes", interface->tx_bytes);
        set_stats_number(json, "txErrors", interface->tx_errors);
}

/* "eth0" is the interface that the kubelet shows next to the list; without it, none is shown. */
static void add_network_stats(json_t *json, const UsageSample *sample) {
        json_t *network, *list;

        if (sample->n_interfaces == 0)
                return;
        network = add_stats_group(json, "network", sample->statistics.usage.taken_at);
        (void) json_object_set_new(network, "name", json_string(""));
        list = json_array();
        for (size_t i = 0; i < sample->n_interfaces; i++) {
                json_t *interface = json_object();

                set_interface_numbers(interface, &sample->interfaces[i]);
                (void) json_array_append_new(list, interface);
                if (streq(sample->interfaces[i].name, "eth0"))
                        set_interface_numbers(network, &sample->interfaces[i]);
        }
        (void) json_object_set_new(network, "interfaces", list);
}

static void add_swap_stats(json_t *json, const UsageSample *sample) {
        set_stats_number(add_stats_group(json, "swap", sample->statistics.usage.taken_at),
                         "swapUsageBytes", sample->statistics.swap_bytes);
}

static void set_process_count(json_t *pod, uint64_t n) {
        (void) json_object_set_new(pod, "process_stats",
                                   json_pack("{s:I}", "process_count", (json_int_t) n));
}

static json_t *add_pod_stats(StatsSummary *summary, const UsageSample *sample) {
        json_t *pod;

        if (sample->started_at == 0)
                return NULL;
        pod = json_pack("{s:{s:s, s:s, s:s}, s:[]}", "podRef", "name", sample->pod, "namespace",
                        sample->namespace, "uid", sample->uid, "containers");
        summary->n_processes = 0;
        if (pod && summary->has_all)
                set_process_count(pod, 0);
        return json_array_append_new(summary->pods, pod) < 0 ? NULL : pod;
}

static json_t *add_container_stats(StatsSummary *summary, const UsageSample *sample) {
        json_t *container;

        if (!summary->pod)
                return NULL;
        summary->n_processes += sample->statistics.n_processes;
        if (summary->has_all)
                set_process_count(summary->pod, summary->n_processes);
        container = json_pack("{s:s}", "name", sample->container);
        return json_array_append_new(json_object_get(summary->pod, "containers"), container) < 0
                       ? NULL
                       : container;
}

static json_t *add_system_stats(const StatsSummary *summary, const UsageSample *sample) {
        json_t *list = json_object_get(summary->node, "systemContainers"), *container;

        if (!list) {
                list = json_array();
                if (json_object_set_new(summary->node, "systemContainers", list) < 0)
                        return NULL;
        }
        container = json_pack("{s:s}", "name", sample->system);
        return json_array_append_new(list, container) < 0 ? NULL : container;
}

void stats_summary_add(StatsSummary *summary, const UsageSample *sample) {
        json_t *json = summary->node;

        if (sample->system)
                json = add_system_stats(summary, sample);
        else if (sample->container)
                json = summary->container = add_container_stats(summary, sample);
        else if (sample->pod)
                json = summary->pod = add_pod_stats(summary, sample);
        if (!sample->container)
                summary->container = NULL;
        if (!json)
                return;
        set_stats_time(json, "startTime", sample->started_at);
        add_cpu_and_memory(summary, json, sample);
        add_swap_stats(json, sample);
        if (!summary->has_all)
                return;
        add_io_stats(json, sample);
        add_network_stats(json, sample);
}

static void set_filesystem_numbers(json_t *json, const FilesystemUsage *filesystem) {
        set_stats_number(json, "availableBytes", filesystem->available);
        set_stats_number(json, "capacityBytes", filesystem->capacity);
        set_stats_number(json, "inodesFree", filesystem->inodes_free);
        set_stats_number(json, "inodes", filesystem->inodes);
}

static json_t *add_volume_stats(json_t *pod, const StorageSample *storage) {
        json_t *list = json_object_get(pod, "volume"), *volume = json_object();

        if (!list) {
                list = json_array();
                if (json_object_set_new(pod, "volume", list) < 0)
                        list = NULL;
        }
        set_stats_time(volume, "time", storage->taken_at);
        (void) json_object_set_new(volume, "name", json_string(storage->name));
        if (storage->claim)
                (void) json_object_set_new(volume, "pvcRef",
                                           json_pack("{s:s, s:s}", "name", storage->claim,
                                                     "namespace", storage->claim_namespace));
        if (storage->has_health)
                (void) json_object_set_new(volume, "volumeHealthStats",
                                           json_pack("{s:b}", "abnormal", storage->is_abnormal));
        return json_array_append_new(list, volume) < 0 ? NULL : volume;
}

void stats_summary_add_storage(StatsSummary *summary, const StorageSample *storage,
                               const FilesystemUsage *filesystem) {
        bool is_pods = storage->kind == STORAGE_VOLUME || storage->kind == STORAGE_EPHEMERAL;
        json_t *owner = is_pods ? summary->pod : summary->container, *json;

        if (!owner || !summary->has_all)
                return;
        if (storage->kind == STORAGE_VOLUME)
                json = add_volume_stats(owner, storage);
        else
                json = add_stats_group(owner,
                                       storage->kind == STORAGE_ROOTFS ? "rootfs"
                                       : storage->kind == STORAGE_LOGS ? "logs"
                                                                       : "ephemeral-storage",
                                       storage->taken_at);
        set_filesystem_numbers(json, filesystem);
        if (!storage->is_measured)
                return;
        set_stats_number(json, "usedBytes", storage->used);
        set_stats_number(json, "inodesUsed", storage->inodes_used);
}

static void add_node_filesystem(json_t *json, const char *name, const FilesystemUsage *filesystem) {
        json_t *group = add_stats_group(json, name, now_realtime_usec());

        set_filesystem_numbers(group, filesystem);
        set_stats_number(group, "usedBytes", filesystem->used);
        set_stats_number(group, "inodesUsed", filesystem->inodes - filesystem->inodes_free);
}

void stats_summary_set_filesystems(StatsSummary *summary, const FilesystemUsage *node,
                                   const FilesystemUsage *images) {
        json_t *runtime = json_object();

        add_node_filesystem(summary->node, "fs", node);
        add_node_filesystem(runtime, "imageFs", images);
        add_node_filesystem(runtime, "containerFs", node);
        (void) json_object_set_new(summary->node, "runtime", runtime);
}

void stats_summary_set_pids(StatsSummary *summary, uint64_t max, uint64_t current) {
        json_t *limit = add_stats_group(summary->node, "rlimit", now_realtime_usec());

        set_stats_number(limit, "maxpid", max);
        set_stats_number(limit, "curproc", current);
}

char *stats_summary_format(const StatsSummary *summary) {
        return json_to_text(summary->json, JSON_COMPACT);
}
