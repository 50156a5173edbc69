/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/eviction/pod-usage.h"

#include "common/cgroup-usage.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/saturating.h"
#include "common/strv.h"

#include <fcntl.h>
#include <stdlib.h>

enum {
        PIDS_LINE_MAX = 32,
};

static int64_t read_pids_current(const char *cgroup) {
        cleanup_free char *path = cgroup_file(cgroup, "pids", "pids.current");
        cleanup_free char *text = NULL;
        cleanup_close int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -EBADF;

        if (fd < 0 || read_stream(fd, PIDS_LINE_MAX, &text, NULL) < 0)
                return -1;
        return strtoll(text, NULL, 10);
}

static void measure_pids(const EvictionCandidate *candidate, PodUsage *usage) {
        usage->used = read_pids_current(candidate->cgroup);
        usage->is_known = usage->used >= 0;
}

static void measure_memory(const EvictionCandidate *candidate, PodUsage *usage) {
        CgroupUsage used;

        usage->is_known = cgroup_usage(candidate->cgroup, &used) >= 0 && !used.lacks_memory;
        usage->used = usage->is_known ? (int64_t) used.working_set_bytes : 0;
        usage->requested = candidate->memory_request;
}

PodUsage measure_pod_usage(const EvictionCandidate *candidate, EvictionSignal signal,
                           const uint64_t *written, size_t index) {
        PodUsage usage = { .index = index, .priority = candidate->priority };
        size_t n_paths = strv_length(candidate->storage_paths);

        if (!written && signal == EVICTION_PIDS)
                measure_pids(candidate, &usage);
        else if (!written)
                measure_memory(candidate, &usage);
        if (!written)
                return usage;
        usage.is_known = true;
        for (size_t i = 0; i < n_paths; i++)
                usage.used += (int64_t) MIN(written[i], (uint64_t) INT32_MAX << 20);
        if (!eviction_signals[signal].is_counted)
                usage.requested = candidate->storage_request;
        return usage;
}

static int64_t container_working_set(const EvictionContainer *container) {
        CgroupUsage used;

        return container->cgroup && cgroup_usage(container->cgroup, &used) >= 0
                       ? (int64_t) used.working_set_bytes
                       : 0;
}

/* The last paths are those of the containers, two for each; see EvictionCandidate. */
static int64_t container_written_bytes(const EvictionCandidate *candidate, const uint64_t *written,
                                       size_t index) {
        size_t n_paths = strv_length(candidate->storage_paths);
        size_t at = n_paths - 2 * (candidate->n_containers - index);

        if (n_paths < 2 * candidate->n_containers)
                return 0;
        return (int64_t) MIN(add_saturating(written[at], written[at + 1]), (uint64_t) INT64_MAX);
}

void measure_container_usages(const EvictionCandidate *candidate, EvictionSignal signal,
                              const uint64_t *written, ContainerUsage *ret) {
        for (size_t i = 0; i < candidate->n_containers; i++) {
                const EvictionContainer *container = &candidate->containers[i];

                ret[i] = (ContainerUsage){ .name = container->name };
                if (eviction_signals[signal].condition == NODE_MEMORY_PRESSURE) {
                        ret[i].requested = container->memory_request;
                        ret[i].request = container->memory_request_text;
                        ret[i].used = container_working_set(container);
                } else if (written && !eviction_signals[signal].is_counted) {
                        ret[i].requested = container->storage_request;
                        ret[i].request = container->storage_request_text;
                        ret[i].used = container_written_bytes(candidate, written, i);
                }
        }
}
