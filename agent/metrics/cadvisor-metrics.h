/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* /metrics/cadvisor: usage of containers, pods and the node under cAdvisor's names and labels,
 * which dashboards use. */

#include "agent/model/usage.h"

typedef struct CadvisorMetrics CadvisorMetrics;

/* NULL: out of memory. */
CadvisorMetrics *cadvisor_metrics_new(void);
CadvisorMetrics *cadvisor_metrics_free(CadvisorMetrics *metrics);
DEFINE_CLEANUP(CadvisorMetrics *, cadvisor_metrics_free)

/* Adds the node, which must be first; a system container, unless its cgroup is already in the
 * metrics; a pod or a container. 0 or -ENOMEM. */
int cadvisor_metrics_add(CadvisorMetrics *metrics, const UsageSample *sample);

/* Sets the storage of the container that was added last; other kinds are ignored, and so is
 * everything except its writable layer.
 */
void cadvisor_metrics_add_storage(CadvisorMetrics *metrics, const StorageSample *storage,
                                  const FilesystemUsage *filesystem);

/* The machine, and the file system of its pods, with its device. */
typedef struct CadvisorMachine {
        unsigned n_cpus;
        uint64_t memory_bytes;
        FilesystemUsage filesystem; /* without a capacity: unknown */
        DiskUsage device;           /* its number */
        DiskUsage disk;             /* I/O of its disk, as counted by cgroups */
} CadvisorMachine;

/* The Prometheus text, which the caller frees; NULL: out of memory. */
char *cadvisor_metrics_format(const CadvisorMetrics *metrics, const CadvisorMachine *machine);
