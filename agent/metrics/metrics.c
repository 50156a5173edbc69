/* SPDX-License-Identifier: Apache-2.0 */

/* The Prometheus text of /metrics, and the status line for systemd. Metrics are a table with a row
 * for each sample. Rows with the same name are adjacent, as the format requires, and the first of
 * them has the help text. The resource metrics of containers are in resource-metrics.c. */

#include "agent/metrics/metrics.h"

#include "agent/metrics/prometheus-label.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>

typedef struct PrometheusSample {
        const char *name;
        const char *type;
        const char *help;   /* NULL: same name as in the row above */
        const char *labels; /* without braces; NULL: none */
        double value;
} PrometheusSample;

/* The metrics of this process, from /proc. */
typedef struct ProcessMetrics {
        double cpu_seconds;
        double resident_bytes;
        double virtual_bytes;
        double start_time;
        double open_fds;
        double max_fds;
} ProcessMetrics;

static double system_boot_time_seconds(void) {
        return (double) (now_realtime_usec() - now_boottime_usec()) / (double) USEC_PER_SEC;
}

/* Fields 22 to 24 of /proc/self/stat: start time, size, pages in memory. The name in the second
 * field may contain any character, so counting starts at the closing bracket. */
static void read_process_stat(ProcessMetrics *process) {
        cleanup_close int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
        cleanup_free char *text = NULL;
        const char *p;
        unsigned long long start, size;
        long pages;

        if (fd < 0 || read_stream(fd, 4 * KIB, &text, NULL) < 0)
                return;
        p = strrchr(text, ')');
        for (unsigned field = 2; p && field < 22; field++) {
                p = strchr(p, ' ');
                if (p)
                        p++;
        }
        if (!p || sscanf(p, "%llu %llu %ld", &start, &size, &pages) != 3)
                return;
        process->start_time =
                system_boot_time_seconds() + (double) start / (double) sysconf(_SC_CLK_TCK);
        process->virtual_bytes = (double) size;
        process->resident_bytes = (double) pages * (double) sysconf(_SC_PAGESIZE);
}

static double count_open_fds(void) {
        cleanup_closedir DIR *dir = opendir("/proc/self/fd");
        unsigned n = 0;

        if (!dir)
                return 0;
        for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
                if (entry->d_name[0] != '.')
                        n++;
        return n - 1; /* without the descriptor that reads the directory */
}

static double timeval_seconds(const struct timeval *tv) {
        return (double) tv->tv_sec + (double) tv->tv_usec / (double) USEC_PER_SEC;
}

static ProcessMetrics read_process_metrics(void) {
        ProcessMetrics process = { 0 };
        struct rusage usage;
        struct rlimit limit;

        read_process_stat(&process);
        process.open_fds = count_open_fds();
        if (getrusage(RUSAGE_SELF, &usage) >= 0)
                process.cpu_seconds =
                        timeval_seconds(&usage.ru_utime) + timeval_seconds(&usage.ru_stime);
        if (getrlimit(RLIMIT_NOFILE, &limit) >= 0)
                process.max_fds = (double) limit.rlim_cur;
        return process;
}

static char *format_node_label(const char *name) {
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        write_prometheus_label(out, "node", name);
        return fclose(out) == 0 ? TAKE_PTR(text) : NULL;
}

static void write_prometheus_sample(FILE *out, const PrometheusSample *metric) {
        if (metric->help)
                fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help,
                        metric->name, metric->type);
        fprintf(out, "%s%s%s%s %.15g\n", metric->name, metric->labels ? "{" : "",
                strna(metric->labels), metric->labels ? "}" : "", metric->value);
}

static void write_agent_metrics(FILE *out, const AgentMetrics *counts, const char *node) {
        ProcessMetrics process = read_process_metrics();
        /* clang-format off */
        const PrometheusSample metrics[] = {
                { "kubelet_node_name", "gauge", "The name of this node, as a label.", node, 1 },
                { "kubelet_desired_pods", "gauge", "Pods that are desired on this node.", "static=\"true\"", counts->pods_desired },
                { "kubelet_running_pods", "gauge", "Pods with at least one running container.", NULL, counts->pods_running },
                { "kubelet_running_containers", "gauge", "Containers by the state of their latest attempt.", "container_state=\"created\"", counts->containers_created },
                { "kubelet_running_containers", "gauge", NULL, "container_state=\"exited\"", counts->containers_exited },
                { "kubelet_running_containers", "gauge", NULL, "container_state=\"running\"", counts->containers_running },
                { "kubelet_running_containers", "gauge", NULL, "container_state=\"unknown\"", counts->containers_unknown },
                { "kubelet_started_pods_total", "counter", "Pods started since the agent started.", NULL, (double) counts->pods_started },
                { "kubelet_started_user_namespaced_pods_total", "counter", "Pods with a user namespace started since the agent started.", NULL, (double) counts->user_pods_started },
                { "kubelet_started_containers_total", "counter", "Container starts since the agent started.", "container_type=\"container\"", (double) counts->containers_started },
                { "kubelet_started_containers_errors_total", "counter", "Container starts that failed since the agent started.", "container_type=\"container\"", (double) counts->containers_start_errors },
                { "mainstay_pods", "gauge", "Pods that exist on this node, including those that terminate.", NULL, counts->pods },
                { "mainstay_restarted_containers_total", "counter", "Container starts that followed an earlier attempt.", NULL, (double) counts->containers_restarted },
                { "mainstay_manifest_errors", "gauge", "Files of the manifest directory whose contents cannot be used.", NULL, counts->manifests_broken },
                { "mainstay_manifest_directory_error", "gauge", "1 while the manifest directory cannot be read.", NULL, counts->manifest_directory_error ? 1 : 0 },
                { "mainstay_archive_errors", "gauge", "Image archives that cannot be used.", NULL, counts->archives_broken },
                { "mainstay_build_info", "gauge", "The version of this agent, as a label.", "version=\"" MAINSTAY_VERSION "\"", 1 },
                { "process_cpu_seconds_total", "counter", "Processor time of the agent, user and system.", NULL, process.cpu_seconds },
                { "process_max_fds", "gauge", "Descriptors that the agent may open.", NULL, process.max_fds },
                { "process_open_fds", "gauge", "Descriptors that the agent has open.", NULL, process.open_fds },
                { "process_resident_memory_bytes", "gauge", "Memory of the agent that is in RAM.", NULL, process.resident_bytes },
                { "process_start_time_seconds", "gauge", "When the agent started, in seconds since 1970.", NULL, process.start_time },
                { "process_virtual_memory_bytes", "gauge", "Address space of the agent.", NULL, process.virtual_bytes },
        };
        /* clang-format on */

        for (size_t i = 0; i < N_ELEMENTS(metrics); i++)
                write_prometheus_sample(out, &metrics[i]);
}

static void write_preemption_metrics(FILE *out, const AgentMetrics *counts) {
        (void) fputs("# HELP kubelet_preemptions Pods stopped for critical pods since the agent "
                     "started, by the resource that was missing.\n"
                     "# TYPE kubelet_preemptions counter\n",
                     out);
        for (size_t i = 0; i < N_ELEMENTS(node_amount_order); i++)
                (void) fprintf(out, "kubelet_preemptions{preemption_signal=\"%s\"} %" PRIu64 "\n",
                               node_amount_name(node_amount_order[i]),
                               counts->preemptions[node_amount_order[i]]);
}

static void write_eviction_metrics(FILE *out, const AgentMetrics *counts) {
        if (counts->evictions)
                (void) fputs("# HELP kubelet_evictions Pods evicted since the agent started, by "
                             "eviction signal.\n"
                             "# TYPE kubelet_evictions counter\n",
                             out);
        for (EvictionSignal s = 0; counts->evictions && s < N_EVICTION_SIGNALS; s++)
                (void) fprintf(out, "kubelet_evictions{eviction_signal=\"%s\"} %" PRIu64 "\n",
                               eviction_signals[s].name, counts->evictions[s]);
        if (counts->conditions)
                (void) fputs("# HELP mainstay_node_condition 1 while the node has the condition.\n"
                             "# TYPE mainstay_node_condition gauge\n",
                             out);
        for (NodeCondition c = 0; counts->conditions && c < N_NODE_CONDITIONS; c++)
                (void) fprintf(out, "mainstay_node_condition{condition=\"%s\"} %d\n",
                               node_conditions[c].name,
                               (counts->conditions->set & NODE_CONDITION_BIT(c)) != 0);
}

static void write_index_numbers(FILE *out, const NodeSources *sources) {
        bool has_help = false;

        for (size_t i = 0; i < sources->n; i++) {
                if (sources->items[i].number <= 0)
                        continue;
                if (!has_help)
                        (void) fputs("# HELP mainstay_source_index_number The number of the signed "
                                     "index of manifests that is in use.\n"
                                     "# TYPE mainstay_source_index_number gauge\n",
                                     out);
                has_help = true;
                (void) fprintf(out, "mainstay_source_index_number{source=\"%s\"} %" PRId64 "\n",
                               sources->items[i].name, sources->items[i].number);
        }
}

static void write_source_metrics(FILE *out, const NodeSources *sources) {
        if (sources->n > 0)
                (void) fputs("# HELP mainstay_source_failed 1 while the latest manifests of a "
                             "source cannot be fetched or used.\n"
                             "# TYPE mainstay_source_failed gauge\n",
                             out);
        for (size_t i = 0; i < sources->n; i++)
                (void) fprintf(out, "mainstay_source_failed{source=\"%s\"} %d\n",
                               sources->items[i].name, sources->items[i].has_failed);
        if (sources->n > 0)
                (void) fputs("# HELP mainstay_source_success_time_seconds When a source of "
                             "manifests last answered what is in use, in seconds since 1970.\n"
                             "# TYPE mainstay_source_success_time_seconds gauge\n",
                             out);
        for (size_t i = 0; i < sources->n; i++)
                (void) fprintf(out,
                               "mainstay_source_success_time_seconds{source=\"%s\"} %" PRIu64 "\n",
                               sources->items[i].name, sources->items[i].succeeded / USEC_PER_SEC);
}

/* The report is the last item if one is configured; it is not a manifest source. */
static const NodeSourceStatus *split_report(NodeSources *sources) {
        if (sources->n == 0 || !streq(sources->items[sources->n - 1].name, NODE_REPORT_NAME))
                return NULL;
        sources->n--;
        return &sources->items[sources->n];
}

static void write_report_metrics(FILE *out, const NodeSourceStatus *report) {
        if (!report)
                return;
        (void) fprintf(out,
                       "# HELP mainstay_report_failed 1 while reports cannot be delivered.\n"
                       "# TYPE mainstay_report_failed gauge\n"
                       "mainstay_report_failed %d\n"
                       "# HELP mainstay_report_success_time_seconds When the server last accepted "
                       "a report, in seconds since 1970.\n"
                       "# TYPE mainstay_report_success_time_seconds gauge\n"
                       "mainstay_report_success_time_seconds %" PRIu64 "\n"
                       "# HELP mainstay_report_waiting Lines that wait to be reported.\n"
                       "# TYPE mainstay_report_waiting gauge\n"
                       "mainstay_report_waiting %zu\n"
                       "# HELP mainstay_report_dropped_total Lines that were dropped because too "
                       "many waited.\n"
                       "# TYPE mainstay_report_dropped_total counter\n"
                       "mainstay_report_dropped_total %" PRIu64 "\n",
                       report->has_failed, report->succeeded / USEC_PER_SEC, report->n_waiting,
                       report->n_dropped);
}

static void write_probe_metrics(FILE *out, const ProbeSample *probes, size_t n) {
        static const char name[] = "prober_probe_total";

        if (n > 0)
                fprintf(out,
                        "# HELP %s Probes of containers, by result.\n"
                        "# TYPE %s counter\n",
                        name, name);
        for (size_t i = 0; i < n; i++) {
                const ProbeSample *p = &probes[i];

                fprintf(out, "%s{", name);
                write_container_labels(out, &(ContainerLabels){ .container = p->container,
                                                                .namespace = p->namespace,
                                                                .pod = p->pod,
                                                                .pod_uid = p->uid });
                fprintf(out, ",probe_type=\"%s\",result=\"%s\"} %" PRIu64 "\n", p->probe_type,
                        p->result, p->n);
        }
}

char *agent_metrics_format(const AgentMetrics *counts) {
        NodeSources sources = counts->sources;
        cleanup_free char *text = NULL;
        cleanup_free char *node = format_node_label(counts->node_name);
        size_t length;
        FILE *out;

        if (!node)
                return NULL;
        out = open_memstream(&text, &length);
        if (!out)
                return NULL;
        write_agent_metrics(out, counts, node);
        write_eviction_metrics(out, counts);
        write_preemption_metrics(out, counts);
        write_report_metrics(out, split_report(&sources));
        write_source_metrics(out, &sources);
        write_index_numbers(out, &sources);
        write_probe_metrics(out, counts->probes, counts->n_probes);
        return fclose(out) == 0 ? TAKE_PTR(text) : NULL;
}

char *probe_metrics_format(const ProbeSample *probes, size_t n) {
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        write_probe_metrics(out, probes, n);
        return fclose(out) == 0 ? TAKE_PTR(text) : NULL;
}

/* ---- the status line ---- */

static const char *plural_suffix(unsigned n) {
        return n == 1 ? "" : "s";
}

static void write_manifest_summary(FILE *out, const AgentMetrics *counts) {
        if (counts->manifests_broken == 0)
                return;
        fprintf(out, "; %u manifest%s broken", counts->manifests_broken,
                plural_suffix(counts->manifests_broken));
        if (counts->manifest_error)
                fprintf(out, ": %s", counts->manifest_error);
}

/* systemd accepts one line; error messages may quote line breaks. */
static void replace_control_characters(char *text) {
        for (; *text; text++)
                if ((unsigned char) *text < ' ')
                        *text = ' ';
}

char *agent_metrics_format_status(const AgentMetrics *counts) {
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        fprintf(out, "%u pod%s, %u running", counts->pods, plural_suffix(counts->pods),
                counts->pods_running);
        if (counts->manifest_directory_error)
                fprintf(out, "; manifests cannot be read: %s", counts->manifest_directory_error);
        write_manifest_summary(out, counts);
        if (counts->archives_broken > 0)
                fprintf(out, "; %u image archive%s broken", counts->archives_broken,
                        plural_suffix(counts->archives_broken));
        if (counts->api_server_error)
                fprintf(out, "; API server: %s", counts->api_server_error);
        if (fclose(out) != 0)
                return NULL;
        replace_control_characters(text);
        return TAKE_PTR(text);
}
