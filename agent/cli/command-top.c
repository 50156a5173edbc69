/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay top`: CPU and memory usage of pods. */

#include "agent/cli/pod-selection.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/output.h"
#include "agent/cli/resources.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/text.h"

#include <inttypes.h>
#include <time.h>

/* The agent provides counters, and a rate is the difference of two samples, so two requests are
 * sent. */

typedef struct PodTop {
        const Options *options;
        const PodFilter *filter;
        char *before, *after; /* the content of /metrics/resource */
} PodTop;

static void pod_top_done(PodTop *top) {
        free(top->before);
        free(top->after);
}

typedef struct ResourceMetricSample {
        double value;
        double at_msec;
} ResourceMetricSample;

/* The sample of a metric with exactly these labels. */
static bool find_metric_sample(const char *text, const char *metric, const char *labels,
                               ResourceMetricSample *ret) {
        const char *found;
        cleanup_free char *line = text_format("\n%s%s ", metric, labels);

        if (!line)
                return false;
        found = strstr(text, line);
        return found && sscanf(found + strlen(line), "%lf %lf", &ret->value, &ret->at_msec) == 2;
}

static bool find_metric_rate(const PodTop *top, const char *metric, const char *labels,
                             double *ret) {
        ResourceMetricSample before, after;

        if (!find_metric_sample(top->before, metric, labels, &before) ||
            !find_metric_sample(top->after, metric, labels, &after) ||
            after.at_msec <= before.at_msec)
                return false;
        *ret = MAX(after.value - before.value, 0.0) / ((after.at_msec - before.at_msec) / 1000);
        return true;
}

/* Millicores and mebibytes, rounded as in kubectl. A line is printed only if the rate is known; on
 * a kernel without the memory controller, memory usage is unknown. */
static void write_resource_usage(const PodTop *top, const char *kind, const char *labels,
                                 const char *head, FILE *out) {
        char cpu[64], memory[64], amount[32] = "<unknown>";
        ResourceMetricSample bytes;
        double cores;

        (void) snprintf(cpu, sizeof(cpu), "%s_cpu_usage_seconds_total", kind);
        (void) snprintf(memory, sizeof(memory), "%s_memory_working_set_bytes", kind);
        if (!find_metric_rate(top, cpu, labels, &cores))
                return;
        if (find_metric_sample(top->after, memory, labels, &bytes))
                (void) snprintf(amount, sizeof(amount), "%" PRIu64 "Mi",
                                (uint64_t) bytes.value / MIB);
        fprintf(out, "%s%" PRIu64 "m\t%s\n", head, (uint64_t) (cores * 1000 + 0.999), amount);
}

static void write_top_containers(const PodTop *top, const char *namespace, const char *pod,
                                 const json_t *containers, const char *head, FILE *out) {
        size_t i;
        json_t *status;

        json_array_foreach(containers, i, status) {
                const char *name = strna(json_text(status, "name"));
                cleanup_free char *labels = NULL, *longer = NULL;

                labels = text_format("{container=\"%s\",namespace=\"%s\",pod=\"%s\"}", name,
                                     namespace, pod);
                longer = text_format("%s%s\t", head, name);
                if (labels && longer)
                        write_resource_usage(top, "container", labels, longer, out);
        }
}

static void write_top_row(const json_t *pod, FILE *out, void *userdata) {
        const PodTop *top = userdata;
        const char *namespace = strna(json_text(pod, "metadata", "namespace"));
        const char *name = strna(json_text(pod, "metadata", "name"));
        bool has_namespace = top->options->all_namespaces;
        cleanup_free char *labels = NULL, *head = NULL;

        head = text_format("%s%s%s\t", has_namespace ? namespace : "", has_namespace ? "\t" : "",
                           name);
        labels = text_format("{namespace=\"%s\",pod=\"%s\"}", namespace, name);
        if (!head || !labels)
                return;
        if (top->options->containers) {
                write_top_containers(top, namespace, name,
                                     json_at(pod, "status", "containerStatuses"), head, out);
                write_top_containers(top, namespace, name,
                                     json_at(pod, "status", "initContainerStatuses"), head, out);
                write_top_containers(top, namespace, name,
                                     json_at(pod, "status", "ephemeralContainerStatuses"), head,
                                     out);
        } else
                write_resource_usage(top, "pod", labels, head, out);
}

static int print_top(PodTop *top, const json_t *pods) {
        Columns columns = COLUMNS_TABLE;
        char headings[96] = "";

        if (!top->options->no_headers)
                (void) snprintf(headings, sizeof(headings), "%s%sCPU(cores)\tMEMORY(bytes)\n",
                                top->options->all_namespaces ? "NAMESPACE\t" : "",
                                top->options->containers ? "POD\tNAME\t" : "NAME\t");
        return print_rows(&columns, headings, pods, write_top_row, top);
}

static int fetch_two_samples(PodTop *top, Error *reterr) {
        const struct timespec second = { .tv_sec = 1 };
        const char *socket = top->options->socket;
        int r = client_get(socket, "/metrics/resource", &top->before, reterr);

        if (r < 0)
                return r;
        (void) clock_nanosleep(CLOCK_MONOTONIC, 0, &second, NULL);
        return client_get(socket, "/metrics/resource", &top->after, reterr);
}

static int top_pods(PodTop *top) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *pods = NULL;
        int status, r;

        r = pods_fetch(top->options->socket, top->filter, &pods, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        status = report_missing_pods(top->filter, pods);
        if (status != STATUS_OK || json_array_size(pods) == 0)
                return status;
        r = fetch_two_samples(top, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        r = print_top(top, pods);
        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}

int run_top(const Options *options) {
        cleanup_with(pod_filter_done) PodFilter filter = { 0 };
        cleanup_with(pod_top_done) PodTop top = { .options = options, .filter = &filter };
        cleanup_error Error error = ERROR_NULL;
        char *const *names;
        ApiResource resource;
        size_t n_names;
        int status, r;

        status = parse_api_resource(options, "top", API_RESOURCE_BIT(API_RESOURCE_PODS), &resource,
                                    &names, &n_names);
        if (status != STATUS_OK)
                return status;
        r = pod_filter_init(&filter, options, names, n_names, &error);
        if (r < 0)
                return fail_usage("%s", error_message(&error, r));
        return top_pods(&top);
}
