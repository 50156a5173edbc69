/* SPDX-License-Identifier: Apache-2.0 */

/* Samples are added container by container and printed metric by metric, as the format requires:
 * each metric collects its lines in a separate buffer. */

#include "agent/metrics/resource-metrics.h"

#include "agent/metrics/prometheus-label.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <inttypes.h>

typedef enum MetricFamily {
        METRIC_CONTAINER_CPU,
        METRIC_CONTAINER_MEMORY,
        METRIC_CONTAINER_START,
        METRIC_NODE_CPU,
        METRIC_NODE_MEMORY,
        METRIC_POD_CPU,
        METRIC_POD_MEMORY,
        N_METRIC_FAMILIES,
} MetricFamily;

/* clang-format off */
static const struct {
        const char *name, *type, *help;
} metric_families[N_METRIC_FAMILIES] = {
        [METRIC_CONTAINER_CPU]    = { "container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the container in core-seconds" },
        [METRIC_CONTAINER_MEMORY] = { "container_memory_working_set_bytes", "gauge", "Current working set of the container in bytes" },
        [METRIC_CONTAINER_START]  = { "container_start_time_seconds", "gauge", "Start time of the container since unix epoch in seconds" },
        [METRIC_NODE_CPU]         = { "node_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the node in core-seconds" },
        [METRIC_NODE_MEMORY]      = { "node_memory_working_set_bytes", "gauge", "Current working set of the node in bytes" },
        [METRIC_POD_CPU]          = { "pod_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the pod in core-seconds" },
        [METRIC_POD_MEMORY]       = { "pod_memory_working_set_bytes", "gauge", "Current working set of the pod in bytes" },
};
/* clang-format on */

struct ResourceMetrics {
        FILE *out[N_METRIC_FAMILIES];
        char *texts[N_METRIC_FAMILIES];
        size_t lengths[N_METRIC_FAMILIES];
        bool has_failed;
};

ResourceMetrics *resource_metrics_new(void) {
        cleanup_with(resource_metrics_freep) ResourceMetrics *metrics = calloc(1, sizeof(*metrics));

        for (size_t i = 0; metrics && i < N_METRIC_FAMILIES; i++) {
                metrics->out[i] = open_memstream(&metrics->texts[i], &metrics->lengths[i]);
                if (!metrics->out[i])
                        return NULL;
        }
        return TAKE_PTR(metrics);
}

ResourceMetrics *resource_metrics_free(ResourceMetrics *metrics) {
        if (!metrics)
                return NULL;
        for (size_t i = 0; i < N_METRIC_FAMILIES; i++) {
                if (metrics->out[i])
                        fclose(metrics->out[i]);
                free(metrics->texts[i]);
        }
        free(metrics);
        return NULL;
}

/* Prints a family's sample up to its value; samples of the node have no labels. */
static FILE *begin_resource_sample(const ResourceMetrics *metrics, MetricFamily family,
                                   const ContainerLabels *labels) {
        FILE *out = metrics->out[family];

        fputs(metric_families[family].name, out);
        if (!labels->pod)
                return out;
        fputc('{', out);
        write_container_labels(out, labels);
        fputc('}', out);
        return out;
}

void resource_metrics_add(ResourceMetrics *metrics, const char *namespace, const char *pod,
                          const char *container, uint64_t started_at, const CgroupUsage *used) {
        MetricFamily cpu = container ? METRIC_CONTAINER_CPU
                           : pod     ? METRIC_POD_CPU
                                     : METRIC_NODE_CPU;
        MetricFamily memory = container ? METRIC_CONTAINER_MEMORY
                              : pod     ? METRIC_POD_MEMORY
                                        : METRIC_NODE_MEMORY;
        const ContainerLabels labels = { .container = container,
                                         .namespace = namespace,
                                         .pod = pod };
        uint64_t at_msec = used->taken_at / USEC_PER_MSEC;

        fprintf(begin_resource_sample(metrics, cpu, &labels), " %.9f %" PRIu64 "\n",
                (double) used->cpu_nsec / 1e9, at_msec);
        if (!used->lacks_memory)
                fprintf(begin_resource_sample(metrics, memory, &labels),
                        " %" PRIu64 " %" PRIu64 "\n", used->working_set_bytes, at_msec);
        if (container && started_at > 0)
                fprintf(begin_resource_sample(metrics, METRIC_CONTAINER_START, &labels), " %.3f\n",
                        (double) started_at / 1e6);
}

void resource_metrics_set_scrape_error(ResourceMetrics *metrics) {
        metrics->has_failed = true;
}

char *resource_metrics_format(ResourceMetrics *metrics) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (size_t i = 0; i < N_METRIC_FAMILIES; i++) {
                if (fflush(metrics->out[i]) != 0 || metrics->lengths[i] == 0)
                        continue;
                fprintf(out, "# HELP %s [STABLE] %s\n# TYPE %s %s\n%s", metric_families[i].name,
                        metric_families[i].help, metric_families[i].name, metric_families[i].type,
                        metrics->texts[i]);
        }
        fprintf(out,
                "# HELP resource_scrape_error [STABLE] 1 if there was an error while getting "
                "container metrics, 0 otherwise\n# TYPE resource_scrape_error gauge\n"
                "resource_scrape_error %d\n",
                metrics->has_failed);
        if (fclose(out) == 0)
                return text;
        free(text);
        return NULL;
}
