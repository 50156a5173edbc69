/* SPDX-License-Identifier: Apache-2.0 */

/* The format requires all samples of a metric to be together, so samples are kept until the end:
 * their numbers, and their labels as text. */

#include "agent/metrics/cadvisor-metrics.h"

#include "agent/metrics/prometheus-label.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

#include <inttypes.h>

typedef struct CadvisorRow {
        char *labels; /* without braces */
        bool is_container;
        uint64_t started_at;
        CgroupStatistics statistics;
        CgroupDetails details;
        NetworkInterfaceUsage *interfaces;
        size_t n_interfaces;
        ProcessUsage processes;
        uint64_t processes_at; /* 0: unknown */
        FilesystemUsage filesystem;
        uint64_t filesystem_at; /* 0: unknown */
} CadvisorRow;

struct CadvisorMetrics {
        CadvisorRow *rows;
        size_t n_rows;
};

typedef struct CadvisorFamily {
        const char *name, *type, *help;
        const char *labels; /* more labels; or NULL */
        size_t offset;      /* offset of a uint64_t in its source */
        double scale;
        bool skips_zero;
} CadvisorFamily;

/* clang-format off */
#define OF_CGROUP(member)    offsetof(CgroupStatistics, member)
#define OF_DETAILS(member)   offsetof(CgroupDetails, member)
#define OF_PROCESSES(member) offsetof(ProcessUsage, member)
#define OF_INTERFACE(member) offsetof(NetworkInterfaceUsage, member)
#define OF_FILESYSTEM(member) offsetof(FilesystemUsage, member)
#define OF_DISK(member)      offsetof(DiskUsage, member)
#define OF_PRESSURE(share)   offsetof(Pressure, share.total_usec)

/* Rows with the same name form one metric. */
static const CadvisorFamily cgroup_families[] = {
        { "container_cpu_user_seconds_total", "counter", "Cumulative user cpu time consumed in seconds.", NULL, OF_CGROUP(cpu_user_nsec), 1e-9 },
        { "container_cpu_system_seconds_total", "counter", "Cumulative system cpu time consumed in seconds.", NULL, OF_CGROUP(cpu_system_nsec), 1e-9 },
        { "container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed in seconds.", "cpu=\"total\"", OF_CGROUP(usage.cpu_nsec), 1e-9 },
        { "container_cpu_cfs_periods_total", "counter", "Number of elapsed enforcement period intervals.", NULL, OF_CGROUP(cpu_periods), 1 },
        { "container_cpu_cfs_throttled_periods_total", "counter", "Number of throttled period intervals.", NULL, OF_CGROUP(cpu_throttled_periods), 1 },
        { "container_cpu_cfs_throttled_seconds_total", "counter", "Total time duration the container has been throttled.", NULL, OF_CGROUP(cpu_throttled_nsec), 1e-9 },
        { "container_memory_cache", "gauge", "Number of bytes of page cache memory.", NULL, OF_CGROUP(cache_bytes), 1 },
        { "container_memory_failures_total", "counter", "Cumulative count of memory allocation failures.", "failure_type=\"pgfault\",scope=\"container\"", OF_CGROUP(own_page_faults), 1 },
        { "container_memory_failures_total", "counter", "Cumulative count of memory allocation failures.", "failure_type=\"pgmajfault\",scope=\"container\"", OF_CGROUP(own_major_page_faults), 1 },
        { "container_memory_failures_total", "counter", "Cumulative count of memory allocation failures.", "failure_type=\"pgfault\",scope=\"hierarchy\"", OF_CGROUP(page_faults), 1 },
        { "container_memory_failures_total", "counter", "Cumulative count of memory allocation failures.", "failure_type=\"pgmajfault\",scope=\"hierarchy\"", OF_CGROUP(major_page_faults), 1 },
        { "container_memory_mapped_file", "gauge", "Size of memory mapped files in bytes.", NULL, OF_CGROUP(mapped_file_bytes), 1 },
        { "container_memory_rss", "gauge", "Size of RSS in bytes.", NULL, OF_CGROUP(rss_bytes), 1 },
        { "container_memory_swap", "gauge", "Container swap usage in bytes.", NULL, OF_CGROUP(swap_bytes), 1 },
        { "container_memory_usage_bytes", "gauge", "Current memory usage in bytes, including all memory regardless of when it was accessed", NULL, OF_CGROUP(memory_bytes), 1 },
        { "container_memory_working_set_bytes", "gauge", "Current working set in bytes.", NULL, OF_CGROUP(usage.working_set_bytes), 1 },
        { "container_processes", "gauge", "Number of processes running inside the container.", NULL, OF_CGROUP(n_processes), 1 },
        { "container_spec_memory_limit_bytes", "gauge", "Memory limit for the container.", NULL, OF_CGROUP(memory_limit), 1 },
        { "container_threads", "gauge", "Number of threads running inside the container", NULL, OF_CGROUP(n_threads), 1 },
};

static const CadvisorFamily details_families[] = {
        { "container_memory_failcnt", "counter", "Number of memory usage hits limits", NULL, OF_DETAILS(memory_failures), 1 },
        { "container_memory_max_usage_bytes", "gauge", "Maximum memory usage recorded in bytes", NULL, OF_DETAILS(memory_peak), 1 },
        { "container_oom_events_total", "counter", "Count of out of memory events observed for the container", NULL, OF_DETAILS(oom_kills), 1 },
        { "container_spec_cpu_period", "gauge", "CPU period of the container.", NULL, OF_DETAILS(cpu_period_usec), 1 },
        { "container_spec_cpu_quota", "gauge", "CPU quota of the container.", NULL, OF_DETAILS(cpu_quota_usec), 1, .skips_zero = true },
        { "container_spec_cpu_shares", "gauge", "CPU share of the container.", NULL, OF_DETAILS(cpu_shares), 1 },
        { "container_spec_memory_reservation_limit_bytes", "gauge", "Memory reservation limit for the container.", NULL, OF_DETAILS(memory_reservation), 1 },
        { "container_spec_memory_swap_limit_bytes", "gauge", "Memory swap limit for the container.", NULL, OF_DETAILS(swap_limit), 1 },
        { "container_threads_max", "gauge", "Maximum number of threads allowed inside the container, infinity if value is zero", NULL, OF_DETAILS(threads_max), 1 },
};

static const CadvisorFamily process_families[] = {
        { "container_file_descriptors", "gauge", "Number of open file descriptors for the container.", NULL, OF_PROCESSES(n_descriptors), 1 },
        { "container_sockets", "gauge", "Number of open sockets for the container.", NULL, OF_PROCESSES(n_sockets), 1 },
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

enum {
        N_NODE_FAMILIES = 2 /* the first ones apply to the node only */
};

static const CadvisorFamily filesystem_families[] = {
        { "container_fs_inodes_free", "gauge", "Number of available Inodes", NULL, OF_FILESYSTEM(inodes_free), 1 },
        { "container_fs_inodes_total", "gauge", "Number of Inodes", NULL, OF_FILESYSTEM(inodes), 1 },
        { "container_fs_limit_bytes", "gauge", "Number of bytes that can be consumed by the container on this filesystem.", NULL, OF_FILESYSTEM(capacity), 1 },
        { "container_fs_usage_bytes", "gauge", "Number of bytes that are consumed by the container on this filesystem.", NULL, OF_FILESYSTEM(used), 1 },
};

/* A pressure sample; the second number is its position. */
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

static void cadvisor_row_done(CadvisorRow *row) {
        free(row->labels);
        free(row->interfaces);
}

CadvisorMetrics *cadvisor_metrics_free(CadvisorMetrics *metrics) {
        if (!metrics)
                return NULL;
        for (size_t i = 0; i < metrics->n_rows; i++)
                cadvisor_row_done(&metrics->rows[i]);
        free(metrics->rows);
        free(metrics);
        return NULL;
}

/* A pod has no sandbox container here; its interfaces are in the pod's row. */
static char *format_cadvisor_labels(const UsageSample *sample) {
        cleanup_free char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        bool is_container = sample->container;

        if (!out)
                return NULL;
        write_container_labels(
                out, &(ContainerLabels){ .container = strna(sample->container),
                                         .id = strna(sample->cgroup),
                                         .image = is_container ? strna(sample->image) : "",
                                         .name = is_container ? strna(sample->container_id) : "",
                                         .namespace = strna(sample->namespace),
                                         .pod = strna(sample->pod) });
        return fclose(out) == 0 ? TAKE_PTR(text) : NULL;
}

static bool has_cadvisor_row(const CadvisorMetrics *metrics, const char *labels) {
        for (size_t i = 0; i < metrics->n_rows; i++)
                if (streq(metrics->rows[i].labels, labels))
                        return true;
        return false;
}

static CadvisorRow cadvisor_row_of_sample(const UsageSample *sample) {
        CadvisorRow row = { .labels = format_cadvisor_labels(sample),
                            .is_container = sample->container,
                            .started_at = sample->started_at,
                            .statistics = sample->statistics,
                            .details = sample->details,
                            .interfaces = calloc(sample->n_interfaces + 1, sizeof(*row.interfaces)),
                            .n_interfaces = sample->n_interfaces };

        for (size_t i = 0; row.interfaces && i < sample->n_interfaces; i++)
                row.interfaces[i] = sample->interfaces[i];
        if (sample->processes) {
                row.processes = *sample->processes;
                row.processes_at = sample->processes_at;
        }
        return row;
}

int cadvisor_metrics_add(CadvisorMetrics *metrics, const UsageSample *sample) {
        CadvisorRow row;

        if (!ARRAY_RESERVE(metrics->rows, metrics->n_rows, 1))
                return -ENOMEM;
        row = cadvisor_row_of_sample(sample);
        if (!row.labels || !row.interfaces) {
                cadvisor_row_done(&row);
                return -ENOMEM;
        }
        if (sample->system && has_cadvisor_row(metrics, row.labels)) {
                cadvisor_row_done(&row);
                return 0;
        }
        metrics->rows[metrics->n_rows++] = row;
        return 0;
}

void cadvisor_metrics_add_storage(CadvisorMetrics *metrics, const StorageSample *storage,
                                  const FilesystemUsage *filesystem) {
        CadvisorRow *row = metrics->n_rows > 0 ? &metrics->rows[metrics->n_rows - 1] : NULL;

        if (!row || !row->is_container || storage->kind != STORAGE_ROOTFS || !storage->is_measured)
                return;
        row->filesystem = *filesystem;
        row->filesystem.used = storage->used;
        row->filesystem_at = storage->taken_at;
}

static void write_family_head(FILE *out, const char *name, const char *type, const char *help) {
        fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Omitted if the previous row belongs to the same metric. */
static void write_head_of_family(FILE *out, const CadvisorFamily *families, size_t i) {
        if (i == 0 || !streq(families[i - 1].name, families[i].name))
                write_family_head(out, families[i].name, families[i].type, families[i].help);
}

static uint64_t cadvisor_value(const CadvisorFamily *family, const void *source) {
        return *(const uint64_t *) ((const char *) source + family->offset);
}

/* Prints integers without a fraction, because there are thousands of values. */
static void write_scaled_value(FILE *out, uint64_t value, double scale, uint64_t at) {
        if (scale == 1)
                fprintf(out, "} %" PRIu64 " %" PRIu64 "\n", value, at / USEC_PER_MSEC);
        else
                fprintf(out, "} %.15g %" PRIu64 "\n", (double) value * scale, at / USEC_PER_MSEC);
}

/* 'label' is an additional one, or NULL. 'at' is realtime. */
static void write_cadvisor_sample(FILE *out, const CadvisorFamily *family, const CadvisorRow *row,
                                  const void *source, const char *label, const char *label_value,
                                  uint64_t at) {
        fputs(family->name, out);
        fputc('{', out);
        fputs(row->labels, out);
        if (family->labels) {
                fputc(',', out);
                fputs(family->labels, out);
        }
        if (label) {
                fputc(',', out);
                write_prometheus_label(out, label, label_value);
        }
        write_scaled_value(out, cadvisor_value(family, source), family->scale, at);
}

static void write_cadvisor_value(FILE *out, const CadvisorFamily *family, const CadvisorRow *row,
                                 const void *source, const char *label, const char *label_value) {
        write_cadvisor_sample(out, family, row, source, label, label_value,
                              row->statistics.usage.taken_at);
}

static void write_cgroup_families(FILE *out, const CadvisorMetrics *metrics) {
        for (size_t f = 0; f < N_ELEMENTS(cgroup_families); f++) {
                write_head_of_family(out, cgroup_families, f);
                for (size_t i = 0; i < metrics->n_rows; i++)
                        write_cadvisor_value(out, &cgroup_families[f], &metrics->rows[i],
                                             &metrics->rows[i].statistics, NULL, NULL);
        }
}

static void write_details_families(FILE *out, const CadvisorMetrics *metrics) {
        for (size_t f = 0; f < N_ELEMENTS(details_families); f++) {
                const CadvisorFamily *family = &details_families[f];

                write_head_of_family(out, details_families, f);
                for (size_t i = 0; i < metrics->n_rows; i++) {
                        const CadvisorRow *row = &metrics->rows[i];

                        if (!family->skips_zero || cadvisor_value(family, &row->details) > 0)
                                write_cadvisor_value(out, family, row, &row->details, NULL, NULL);
                }
        }
}

static void write_process_families(FILE *out, const CadvisorMetrics *metrics) {
        for (size_t f = 0; f < N_ELEMENTS(process_families); f++) {
                write_head_of_family(out, process_families, f);
                for (size_t i = 0; i < metrics->n_rows; i++) {
                        const CadvisorRow *row = &metrics->rows[i];

                        if (row->processes_at > 0)
                                write_cadvisor_sample(out, &process_families[f], row,
                                                      &row->processes, NULL, NULL,
                                                      row->processes_at);
                }
        }
}

static void write_soft_limits(FILE *out, const CadvisorMetrics *metrics) {
        write_family_head(out, "container_ulimits_soft", "gauge",
                          "Soft ulimit values for the container root process. Unlimited if -1, "
                          "except priority and nice");
        for (size_t i = 0; i < metrics->n_rows; i++) {
                const CadvisorRow *row = &metrics->rows[i];
                uint64_t limit = row->processes.open_files_max;

                if (row->processes_at > 0 && limit > 0)
                        fprintf(out,
                                "container_ulimits_soft{%s,ulimit=\"max_open_files\"} %" PRId64
                                " %" PRIu64 "\n",
                                row->labels, limit < OPEN_FILES_UNLIMITED ? (int64_t) limit : -1,
                                row->processes_at / USEC_PER_MSEC);
        }
}

static void write_last_seen(FILE *out, const CadvisorMetrics *metrics) {
        uint64_t now = now_realtime_usec();

        write_family_head(out, "container_last_seen", "gauge",
                          "Last time a container was seen by the exporter");
        for (size_t i = 0; i < metrics->n_rows; i++)
                fprintf(out, "container_last_seen{%s} %" PRIu64 " %" PRIu64 "\n",
                        metrics->rows[i].labels, now / USEC_PER_SEC, now / USEC_PER_MSEC);
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

/* A container that has not used a disk yet reports zeros for the disk of its writable layer,
 * because counters should start at zero. */
static DiskUsages disks_of_row(const CadvisorRow *row, const CadvisorMachine *machine) {
        if (row->statistics.disks.n > 0 || !row->is_container)
                return row->statistics.disks;
        return (DiskUsages){ .n = 1, .items = { machine->disk } };
}

static void write_disk_family(FILE *out, const CadvisorFamily *family, const CadvisorRow *row,
                              const CadvisorMachine *machine) {
        const DiskUsages disks = disks_of_row(row, machine);

        for (size_t i = 0; i < disks.n; i++) {
                char name[DISK_NAME_SIZE];

                write_cadvisor_value(out, family, row, &disks.items[i], "device",
                                     disk_name(&disks.items[i], name));
        }
}

static void write_disk_families(FILE *out, const CadvisorMetrics *metrics,
                                const CadvisorMachine *machine) {
        for (size_t f = 0; f < N_ELEMENTS(disk_families); f++) {
                write_head_of_family(out, disk_families, f);
                for (size_t i = 0; i < metrics->n_rows; i++)
                        write_disk_family(out, &disk_families[f], &metrics->rows[i], machine);
        }
}

static void write_disk_operation(FILE *out, const CadvisorRow *row, const DiskUsage *disk,
                                 const char *operation, uint64_t bytes) {
        char name[DISK_NAME_SIZE];

        fprintf(out, "container_blkio_device_usage_total{%s,", row->labels);
        write_prometheus_label(out, "device", disk_name(disk, name));
        fprintf(out, ",major=\"%u\",minor=\"%u\",operation=\"%s\"} %" PRIu64 " %" PRIu64 "\n",
                disk->major, disk->minor, operation, bytes,
                row->statistics.usage.taken_at / USEC_PER_MSEC);
}

static void write_disk_operations(FILE *out, const CadvisorMetrics *metrics,
                                  const CadvisorMachine *machine) {
        write_family_head(out, "container_blkio_device_usage_total", "counter",
                          "Blkio Device bytes usage");
        for (size_t i = 0; i < metrics->n_rows; i++) {
                const CadvisorRow *row = &metrics->rows[i];
                const DiskUsages disks = disks_of_row(row, machine);

                for (size_t j = 0; j < disks.n; j++) {
                        write_disk_operation(out, row, &disks.items[j], "Read",
                                             disks.items[j].read_bytes);
                        write_disk_operation(out, row, &disks.items[j], "Write",
                                             disks.items[j].written_bytes);
                }
        }
}

/* Samples of the node, whose row is the first, and of the containers' writable layers. */
static void write_filesystem_families(FILE *out, const CadvisorMetrics *metrics,
                                      const CadvisorMachine *machine) {
        char name[DISK_NAME_SIZE];

        if (metrics->n_rows == 0 || machine->filesystem.capacity == 0)
                return;
        (void) disk_name(&machine->device, name);
        for (size_t f = 0; f < N_ELEMENTS(filesystem_families); f++) {
                const CadvisorFamily *family = &filesystem_families[f];

                write_head_of_family(out, filesystem_families, f);
                write_cadvisor_value(out, family, &metrics->rows[0], &machine->filesystem, "device",
                                     name);
                for (size_t i = 1; f >= N_NODE_FAMILIES && i < metrics->n_rows; i++) {
                        const CadvisorRow *row = &metrics->rows[i];

                        if (row->filesystem_at > 0)
                                write_cadvisor_sample(out, family, row, &row->filesystem, "device",
                                                      name, row->filesystem_at);
                }
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
        write_last_seen(out, metrics);
        write_cgroup_families(out, metrics);
        write_details_families(out, metrics);
        write_process_families(out, metrics);
        write_soft_limits(out, metrics);
        write_interface_families(out, metrics);
        write_disk_families(out, metrics, machine);
        write_disk_operations(out, metrics, machine);
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
