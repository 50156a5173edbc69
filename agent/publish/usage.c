/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/publish/usage.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <inttypes.h>

/* Samples come container by container, and are told metric by metric, as the format demands: each
 * metric has a text of its own meanwhile. */

typedef enum Family {
        CONTAINER_CPU,
        CONTAINER_MEMORY,
        CONTAINER_START,
        NODE_CPU,
        NODE_MEMORY,
        POD_CPU,
        POD_MEMORY,
        N_FAMILIES,
} Family;

/* clang-format off */
static const struct {
        const char *name, *type, *help;
} families[N_FAMILIES] = {
        [CONTAINER_CPU]    = { "container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the container in core-seconds" },
        [CONTAINER_MEMORY] = { "container_memory_working_set_bytes", "gauge", "Current working set of the container in bytes" },
        [CONTAINER_START]  = { "container_start_time_seconds", "gauge", "Start time of the container since unix epoch in seconds" },
        [NODE_CPU]         = { "node_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the node in core-seconds" },
        [NODE_MEMORY]      = { "node_memory_working_set_bytes", "gauge", "Current working set of the node in bytes" },
        [POD_CPU]          = { "pod_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the pod in core-seconds" },
        [POD_MEMORY]       = { "pod_memory_working_set_bytes", "gauge", "Current working set of the pod in bytes" },
};
/* clang-format on */

struct Usage {
        FILE *out[N_FAMILIES];
        char *texts[N_FAMILIES];
        size_t lengths[N_FAMILIES];
        bool has_failed;
};

Usage *usage_new(void) {
        cleanup_with(usage_freep) Usage *usage = calloc(1, sizeof(*usage));

        for (size_t i = 0; usage && i < N_FAMILIES; i++) {
                usage->out[i] = open_memstream(&usage->texts[i], &usage->lengths[i]);
                if (!usage->out[i])
                        return NULL;
        }
        return TAKE_PTR(usage);
}

Usage *usage_free(Usage *usage) {
        if (!usage)
                return NULL;
        for (size_t i = 0; i < N_FAMILIES; i++) {
                if (usage->out[i])
                        fclose(usage->out[i]);
                free(usage->texts[i]);
        }
        free(usage);
        return NULL;
}

static void write_labels(FILE *out, const char *namespace, const char *pod, const char *container) {
        if (container)
                fprintf(out, "{container=\"%s\",namespace=\"%s\",pod=\"%s\"}", container, namespace,
                        pod);
        else if (pod)
                fprintf(out, "{namespace=\"%s\",pod=\"%s\"}", namespace, pod);
}

void usage_add(Usage *usage, const char *namespace, const char *pod, const char *container,
               uint64_t started_at, const CgroupUsage *used) {
        Family cpu = container ? CONTAINER_CPU : pod ? POD_CPU : NODE_CPU;
        Family memory = container ? CONTAINER_MEMORY : pod ? POD_MEMORY : NODE_MEMORY;
        uint64_t at_msec = used->taken_at / USEC_PER_MSEC;

        fputs(families[cpu].name, usage->out[cpu]);
        write_labels(usage->out[cpu], namespace, pod, container);
        fprintf(usage->out[cpu], " %.9f %" PRIu64 "\n", (double) used->cpu_nsec / 1e9, at_msec);
        fputs(families[memory].name, usage->out[memory]);
        write_labels(usage->out[memory], namespace, pod, container);
        fprintf(usage->out[memory], " %" PRIu64 " %" PRIu64 "\n", used->working_set_bytes, at_msec);
        if (!container || started_at == 0)
                return;
        fputs(families[CONTAINER_START].name, usage->out[CONTAINER_START]);
        write_labels(usage->out[CONTAINER_START], namespace, pod, container);
        fprintf(usage->out[CONTAINER_START], " %.3f\n", (double) started_at / 1e6);
}

void usage_add_failure(Usage *usage) {
        usage->has_failed = true;
}

char *usage_print(Usage *usage) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (size_t i = 0; i < N_FAMILIES; i++) {
                if (fflush(usage->out[i]) != 0 || usage->lengths[i] == 0)
                        continue;
                fprintf(out, "# HELP %s [STABLE] %s\n# TYPE %s %s\n%s", families[i].name,
                        families[i].help, families[i].name, families[i].type, usage->texts[i]);
        }
        fprintf(out,
                "# HELP resource_scrape_error [STABLE] 1 if there was an error while getting "
                "container metrics, 0 otherwise\n# TYPE resource_scrape_error gauge\n"
                "resource_scrape_error %d\n",
                usage->has_failed);
        if (fclose(out) == 0)
                return text;
        free(text);
        return NULL;
}
