/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kubelet's /stats/summary (k8s.io/kubelet/pkg/apis/stats/v1alpha1): samples in, JSON out. */

#include "agent/metrics/cpu-rates.h"
#include "agent/model/usage.h"

typedef struct StatsSummary StatsSummary;

/* 'rates' is borrowed. Without 'has_all', only CPU and memory are reported. NULL: out of memory. */
StatsSummary *stats_summary_new(const char *node_name, CpuRates *rates, bool has_all);
StatsSummary *stats_summary_free(StatsSummary *summary);
DEFINE_CLEANUP(StatsSummary *, stats_summary_free)

/* Adds the node, a system container, a pod, or a container of the pod that was added last. A pod
 * that has not started is omitted, with its containers. */
void stats_summary_add(StatsSummary *summary, const UsageSample *sample);

/* Sets the storage of the container or pod that was added last. */
void stats_summary_add_storage(StatsSummary *summary, const StorageSample *storage,
                               const FilesystemUsage *filesystem);

/* Sets the file systems of the node; the second one is for images. */
void stats_summary_set_filesystems(StatsSummary *summary, const FilesystemUsage *node,
                                   const FilesystemUsage *images);
void stats_summary_set_pids(StatsSummary *summary, uint64_t max, uint64_t current);

/* The JSON, which the caller frees; NULL: out of memory. */
char *stats_summary_format(const StatsSummary *summary);
