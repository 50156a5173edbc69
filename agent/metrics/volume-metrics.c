/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/metrics/volume-metrics.h"

#include "common/array.h"
#include "common/file.h"

#include <errno.h>
#include <inttypes.h>

enum {
        VALUES = 6
};

/* The names in the order of the enum. */
static const struct {
        const char *name, *help;
} volume_metrics[VALUES] = {
        { "capacity_bytes", "Capacity in bytes of the volume" },
        { "available_bytes", "Number of available bytes in the volume" },
        { "used_bytes", "Number of used bytes in the volume" },
        { "inodes", "Maximum number of inodes in the volume" },
        { "inodes_free", "Number of free inodes in the volume" },
        { "inodes_used", "Number of used inodes in the volume" },
};

typedef struct VolumeMetric {
        char *namespace;
        char *claim;
        uint64_t values[VALUES];
        bool has_health, is_abnormal;
} VolumeMetric;

struct VolumeMetrics {
        VolumeMetric *items;
        size_t n;
};

VolumeMetrics *volume_metrics_new(void) {
        return calloc(1, sizeof(VolumeMetrics));
}

VolumeMetrics *volume_metrics_free(VolumeMetrics *metrics) {
        for (size_t i = 0; metrics && i < metrics->n; i++) {
                free(metrics->items[i].namespace);
                free(metrics->items[i].claim);
        }
        if (metrics)
                free(metrics->items);
        free(metrics);
        return NULL;
}

int volume_metrics_add(VolumeMetrics *metrics, const StorageSample *sample,
                       const FilesystemUsage *filesystem) {
        VolumeMetric *metric;

        for (size_t i = 0; i < metrics->n; i++)
                if (streq(metrics->items[i].namespace, sample->claim_namespace) &&
                    streq(metrics->items[i].claim, sample->claim))
                        return 0;
        metric = ARRAY_APPEND(metrics->items, metrics->n);
        if (!metric)
                return -ENOMEM;
        *metric = (VolumeMetric){ .namespace = strdup(sample->claim_namespace),
                                  .claim = strdup(sample->claim),
                                  .values = { filesystem->capacity, filesystem->available,
                                              sample->used, filesystem->inodes,
                                              filesystem->inodes_free, sample->inodes_used },
                                  .has_health = sample->has_health,
                                  .is_abnormal = sample->is_abnormal };
        return metric->namespace && metric->claim ? 0 : -ENOMEM;
}

static void put_help(FILE *out, const char *name, const char *help) {
        (void) fprintf(out,
                       "# HELP kubelet_volume_stats_%s %s\n# TYPE kubelet_volume_stats_%s gauge\n",
                       name, help, name);
}

static void put_value(FILE *out, const char *name, const VolumeMetric *metric, uint64_t value) {
        (void) fprintf(out,
                       "kubelet_volume_stats_%s{namespace=\"%s\",persistentvolumeclaim=\"%s\"} "
                       "%" PRIu64 "\n",
                       name, metric->namespace, metric->claim, value);
}

char *volume_metrics_format(const VolumeMetrics *metrics) {
        static const char health[] = "health_status_abnormal";
        bool has_health = false;
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (size_t v = 0; metrics->n > 0 && v < VALUES; v++) {
                put_help(out, volume_metrics[v].name, volume_metrics[v].help);
                for (size_t i = 0; i < metrics->n; i++)
                        put_value(out, volume_metrics[v].name, &metrics->items[i],
                                  metrics->items[i].values[v]);
        }
        for (size_t i = 0; i < metrics->n; i++) {
                if (!metrics->items[i].has_health)
                        continue;
                if (!has_health)
                        put_help(out, health,
                                 "Abnormal volume health status. The count is either 1 or 0. 1 "
                                 "indicates the volume is unhealthy, 0 indicates volume is "
                                 "healthy");
                has_health = true;
                put_value(out, health, &metrics->items[i], metrics->items[i].is_abnormal);
        }
        return memstream_finish(out, &text);
}
