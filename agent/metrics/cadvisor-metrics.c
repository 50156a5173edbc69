/* SPDX-License-Identifier: Apache-2.0 */

/* The format wants all samples of a metric together, so samples are kept until the end: their
 * numbers, and their labels as text. */

#include "agent/metrics/cadvisor-metrics.h"

#include "agent/metrics/prometheus-label.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

#include <inttypes.h>

typedef struct CadvisorRow {
        char *labels; /* without the braces */
        uint64_t started_at;
        CgroupStatistics statistics;
        NetworkInterfaceUsage *interfaces;
        size_t n_interfaces;
} CadvisorRow;

struct CadvisorMetrics {
        CadvisorRow *rows;
        size_t n_rows;
};

typedef struct CadvisorFamily {
        const char *name, *type, *help;
        const char *labels; /* more of them; or NULL */
        size_t offset;      /* of an uint64_t in its source */
        double scale;
} CadvisorFamily;

/* clang-format off */
#define OF_CGROUP(member)    offsetof(CgroupStatistics, member)
#define OF_INTERFACE(member) offsetof(NetworkInterfaceUsage, member)
#define OF_FILESYSTEM(member) offsetof(FilesystemUsage, member)
#define OF_DISK(member)      offsetof(DiskUsage, member)
#define OF_PRESSURE(share)   offsetof(Pressure, share.total_usec)

static const CadvisorFamily cgroup_families[] = {
        { "container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed in seconds.", "cpu=\"total\"", OF_CGROUP(usage.cpu_nsec), 1e-9 },
        { "container_cpu_cfs_periods_total", "counter", "Number of elapsed enforcement period intervals.", NULL, OF_CGROUP(cpu_periods), 1 },
        { "container_cpu_cfs_throttled_periods_total", "counter", "Number of throttled period intervals.", NULL, OF_CGROUP(cpu_throttled_periods), 1 },
        { "container_cpu_cfs_throttled_seconds_total", "counter", "Total time duration the container has been throttled.", NULL, OF_CGROUP(cpu_throttled_nsec), 1e-9 },
        { "container_memory_cache", "gauge", "Number of bytes of page cache memory.", NULL, OF_CGROUP(cache_bytes), 1 },
        { "container_memory_rss", "gauge", "Size of RSS in bytes.", NULL, OF_CGROUP(rss_bytes), 1 },
        { "container_memory_swap", "gauge", "Container swap usage in bytes.", NULL, OF_CGROUP(swap_bytes), 1 },
        { "container_memory_usage_bytes", "gauge", "Current memory usage in bytes, including all memory regardless of when it was accessed", NULL, OF_CGROUP(memory_bytes), 1 },
        { "container_memory_working_set_bytes", "gauge", "Current working set in bytes.", NULL, OF_CGROUP(usage.working_set_bytes), 1 },
        { "container_processes", "gauge", "Number of processes running inside the container.", NULL, OF_CGROUP(n_processes), 1 },
        { "container_spec_memory_limit_bytes", "gauge", "Memory limit for the container.", NULL, OF_CGROUP(memory_limit), 1 },
};

static const CadvisorFamily interface_families[] = {
        { "container_network_receive_bytes_total", "counter", "Cumulative count of bytes received", NULL, OF_INTERFACE(rx_bytes), 1 },
        { "container_network_receive_errors_total", "counter", "Cumulative count of errors encountered while receiving", NULL, OF_INTERFACE(rx_errors), 1 },
        { "container_network_receive_packets_dropped_total", "counter", "Cumulative count of packets dropped while receiving", NULL, OF_INTERFACE(rx_dropped), 1 },
        { "container_network_receive_packets_total", "counter", "Cumulative count of packets received", NULL, OF_INTERFACE(rx_packets), 1 },
        { "container_network_transmit_bytes_total", "counter", "Cumulative count of bytes transmitted", NULL, OF_INTERFACE(tx_bytes), 1 },
        { "container_network_transmit_errors_total", "counter", "Cumulative count of errors encountered while transmitting", NULL, OF_INTERFACE(tx_errors), 1 },
        { "container_network_transmit_packets_dropped_total", "counter", "Cumulative count of packets dropped while transmitting", NULL, OF_INTERFACE(tx_dropped), 1 },
        { "container_network_transmit_packets_total", "counter", "Cumulative count of packets transmitted", NULL, OF_INTERFACE(tx_packets), 1 },
};

static const CadvisorFamily disk_families[] = {
        { "container_fs_reads_bytes_total", "counter", "Cumulative count of bytes read", NULL, OF_DISK(read_bytes), 1 },
        { "container_fs_reads_total", "counter", "Cumulative count of reads completed", NULL, OF_DISK(reads), 1 },
        { "container_fs_writes_bytes_total", "counter", "Cumulative count of bytes written", NULL, OF_DISK(written_bytes), 1 },
        { "container_fs_writes_total", "counter", "Cumulative count of writes completed", NULL, OF_DISK(writes), 1 },
};

static const CadvisorFamily filesystem_families[] = {
        { "container_fs_inodes_free", "gauge", "Number of available Inodes", NULL, OF_FILESYSTEM(inodes_free), 1 },
        { "container_fs_inodes_total", "gauge", "Number of Inodes", NULL, OF_FILESYSTEM(inodes), 1 },
        { "container_fs_limit_bytes", "gauge", "Number of bytes that can be consumed by the container on this filesystem.", NULL, OF_FILESYSTEM(capacity), 1 },
        { "container_fs_usage_bytes", "gauge", "Number of bytes that are consumed by the container on this filesystem.", NULL, OF_FILESYSTEM(used), 1 },
};

/* Of a pressure, which the second number is the place of. */
static const struct {
        CadvisorFamily family;
        size_t pressure;
} pressure_families[] = {
        { { "container_pressure_cpu_stalled_seconds_total", "counter", "Total time duration no tasks in the container could make progress due to CPU congestion.", NULL, OF_PRESSURE(full), 1e-6 }, OF_CGROUP(cpu_pressure) },
        { { "container_pressure_cpu_waiting_seconds_total", "counter", "Total time duration tasks in the container have waited due to CPU congestion.", NULL, OF_PRESSURE(some), 1e-6 }, OF_CGROUP(cpu_pressure) },
        { { "container_pressure_io_stalled_seconds_total", "counter", "Total time duration no tasks in the container could make progress due to IO congestion.", NULL, OF_PRESSURE(full), 1e-6 }, OF_CGROUP(io_pressure) },
        { { "container_pressure_io_waiting_seconds_total", "counter", "Total time duration tasks in the container have waited due to IO congestion.", NULL, OF_PRESSURE(some), 1e-6 }, OF_CGROUP(io_pressure) },
        { { "container_pressure_memory_stalled_seconds_total", "counter", "Total time duration no tasks in the container could make progress due to memory congestion.", NULL, OF_PRESSURE(full), 1e-6 }, OF_CGROUP(memory_pressure) },
        { { "container_pressure_memory_waiting_seconds_total", "counter", "Total time duration tasks in the container have waited due to memory congestion.", NULL, OF_PRESSURE(some), 1e-6 }, OF_CGROUP(memory_pressure) },
};
/* clang-format on */

CadvisorMetrics *cadvisor_metrics_new(void) {
        return calloc(1, sizeof(CadvisorMetrics));
}

CadvisorMetrics *cadvisor_metrics_free(CadvisorMetrics *metrics) {
        if (!metrics)
                return NULL;
        for (size_t i = 0; i < metrics->n_rows; i++) {
                free(metrics->rows[i].labels);
                free(metrics->rows[i].interfaces);
        }
        free(metrics->rows);
        free(metrics);
        return NULL;
}

/* A pod is without a sandbox container here; its interfaces are in the row of the pod. */
static char *format_cadvisor_labels(const UsageSample *sample) {
        cleanup_free char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        bool is_container = sample->container;

        if (!out)
                return NULL;
        write_prometheus_label(out, "container", is_container ? sample->container : "");
        fputc(',', out);
        write_prometheus_label(out, "id", sample->cgroup);
        fputc(',', out);
        write_prometheus_label(out, "image", is_container ? sample->image : "");
        fputc(',', out);
        write_prometheus_label(out, "name", is_container ? sample->container_id : "");
        fputc(',', out);
        write_prometheus_label(out, "namespace", sample->namespace);
        fputc(',', out);
        write_prometheus_label(out, "pod", sample->pod);
        return fclose(out) == 0 ? TAKE_PTR(text) : NULL;
}

int cadvisor_metrics_add(CadvisorMetrics *metrics, const UsageSample *sample) {
        CadvisorRow *more = reallocarray(metrics->rows, metrics->n_rows + 1, sizeof(*more));
        CadvisorRow row = { .started_at = sample->started_at, .statistics = sample->statistics };

        if (!more)
                return -ENOMEM;
        metrics->rows = more;
        row.labels = format_cadvisor_labels(sample);
        row.interfaces = calloc(sample->n_interfaces + 1, sizeof(*row.interfaces));
        if (!row.labels || !row.interfaces) {
                free(row.labels);
                free(row.interfaces);
                return -ENOMEM;
        }
        row.n_interfaces = sample->n_interfaces;
        for (size_t i = 0; i < sample->n_interfaces; i++)
                row.interfaces[i] = sample->interfaces[i];
        metrics->rows[metrics->n_rows++] = row;
        return 0;
}

static void write_family_head(FILE *out, const char *name, const char *type, const char *help) {
        fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void write_cadvisor_value(FILE *out, const CadvisorFamily *family, const CadvisorRow *row,
                                 const void *source, const char *label, const char *label_value) {
        uint64_t value = *(const uint64_t *) ((const char *) source + family->offset);

        fprintf(out, "%s{%s", family->name, row->labels);
        if (family->labels)
                fprintf(out, ",%s", family->labels);
        if (label) {
                fputc(',', out);
                write_prometheus_label(out, label, label_value);
        }
        fprintf(out, "} %.15g %" PRIu64 "\n", (double) value * family->scale,
                row->statistics.usage.taken_at / USEC_PER_MSEC);
}

static void write_cgroup_families(FILE *out, const CadvisorMetrics *metrics) {
        for (size_t f = 0; f < N_ELEMENTS(cgroup_families); f++) {
                const CadvisorFamily *family = &cgroup_families[f];

                write_family_head(out, family->name, family->type, family->help);
                for (size_t i = 0; i < metrics->n_rows; i++)
                        write_cadvisor_value(out, family, &metrics->rows[i],
                                             &metrics->rows[i].statistics, NULL, NULL);
        }
}

static void write_interface_families(FILE *out, const CadvisorMetrics *metrics) {
        for (size_t f = 0; f < N_ELEMENTS(interface_families); f++) {
                const CadvisorFamily *family = &interface_families[f];

                write_family_head(out, family->name, family->type, family->help);
                for (size_t i = 0; i < metrics->n_rows; i++)
                        for (size_t j = 0; j < metrics->rows[i].n_interfaces; j++)
                                write_cadvisor_value(out, family, &metrics->rows[i],
                                                     &metrics->rows[i].interfaces[j], "interface",
                                                     metrics->rows[i].interfaces[j].name);
        }
}

static void write_disk_family(FILE *out, const CadvisorFamily *family, const CadvisorRow *row) {
        for (size_t i = 0; i < row->statistics.disks.n; i++) {
                const DiskUsage *disk = &row->statistics.disks.items[i];
                char name[DISK_NAME_SIZE];

                write_cadvisor_value(out, family, row, disk, "device", disk_name(disk, name));
        }
}

static void write_disk_families(FILE *out, const CadvisorMetrics *metrics) {
        for (size_t f = 0; f < N_ELEMENTS(disk_families); f++) {
                const CadvisorFamily *family = &disk_families[f];

                write_family_head(out, family->name, family->type, family->help);
                for (size_t i = 0; i < metrics->n_rows; i++)
                        write_disk_family(out, family, &metrics->rows[i]);
        }
}

/* Of the node, whose row is the first. */
static void write_filesystem_families(FILE *out, const CadvisorMetrics *metrics,
                                      const CadvisorMachine *machine) {
        char name[DISK_NAME_SIZE];

        if (metrics->n_rows == 0 || machine->filesystem.capacity == 0)
                return;
        (void) disk_name(&machine->device, name);
        for (size_t f = 0; f < N_ELEMENTS(filesystem_families); f++) {
                const CadvisorFamily *family = &filesystem_families[f];

                write_family_head(out, family->name, family->type, family->help);
                write_cadvisor_value(out, family, &metrics->rows[0], &machine->filesystem, "device",
                                     name);
        }
}

static void write_pressure_families(FILE *out, const CadvisorMetrics *metrics) {
        for (size_t f = 0; f < N_ELEMENTS(pressure_families); f++) {
                const CadvisorFamily *family = &pressure_families[f].family;

                write_family_head(out, family->name, family->type, family->help);
                for (size_t i = 0; i < metrics->n_rows; i++) {
                        const CadvisorRow *row = &metrics->rows[i];
                        const Pressure *pressure =
                                (const Pressure *) ((const char *) &row->statistics +
                                                    pressure_families[f].pressure);

                        if (pressure->is_known)
                                write_cadvisor_value(out, family, row, pressure, NULL, NULL);
                }
        }
}

static void write_start_times(FILE *out, const CadvisorMetrics *metrics) {
        write_family_head(out, "container_start_time_seconds", "gauge",
                          "Start time of the container since unix epoch in seconds.");
        for (size_t i = 0; i < metrics->n_rows; i++)
                if (metrics->rows[i].started_at > 0)
                        fprintf(out, "container_start_time_seconds{%s} %.3f\n",
                                metrics->rows[i].labels,
                                (double) metrics->rows[i].started_at / (double) USEC_PER_SEC);
}

char *cadvisor_metrics_format(const CadvisorMetrics *metrics, const CadvisorMachine *machine) {
        cleanup_free char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        write_cgroup_families(out, metrics);
        write_interface_families(out, metrics);
        write_disk_families(out, metrics);
        write_filesystem_families(out, metrics, machine);
        write_pressure_families(out, metrics);
        write_start_times(out, metrics);
        write_family_head(out, "machine_cpu_cores", "gauge", "Number of logical CPU cores.");
        fprintf(out, "machine_cpu_cores %u\n", machine->n_cpus);
        write_family_head(out, "machine_memory_bytes", "gauge",
                          "Amount of memory installed on the machine.");
        fprintf(out, "machine_memory_bytes %" PRIu64 "\n", machine->memory_bytes);
        return fclose(out) == 0 ? TAKE_PTR(text) : NULL;
}
