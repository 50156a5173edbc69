/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* kubelet_volume_stats_*: the usage of claims as Prometheus text. */

#include "agent/model/usage.h"
#include "common/cleanup.h"

typedef struct VolumeMetrics VolumeMetrics;

VolumeMetrics *volume_metrics_new(void); /* NULL: out of memory */
VolumeMetrics *volume_metrics_free(VolumeMetrics *metrics);
DEFINE_CLEANUP(VolumeMetrics *, volume_metrics_free)

/* Adds a volume that has a claim, once for all pods that use the claim. 0 or -ENOMEM. */
int volume_metrics_add(VolumeMetrics *metrics, const StorageSample *sample,
                       const FilesystemUsage *filesystem);

/* The caller frees it; empty if there are no volumes; NULL: out of memory. */
char *volume_metrics_format(const VolumeMetrics *metrics);
