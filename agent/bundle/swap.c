/* SPDX-License-Identifier: Apache-2.0 */
/* Computes memory.swap.max from memorySwap.swapBehavior: NoSwap or LimitedSwap. */

#include "agent/bundle/swap.h"

#include "agent/model/containers.h"
#include "agent/model/eviction.h"
#include "agent/model/qos.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <fcntl.h>
#include <unistd.h>

/* This is checked in the agent's own cgroup, because the root of cgroup v2 has no limit files. If
 * the agent is in the root, a kernel with swap is assumed to support limits. */
static bool own_cgroup_has_swap_limit(void) {
        cleanup_free char *text = NULL, *path = NULL;
        const char *group;

        if (read_file_at(AT_FDCWD, "/proc/self/cgroup", 64 * KIB, &text, NULL) < 0)
                return false;
        group = strstr(text, "0::/");
        if (!group || group[4] == '\n' || group[4] == '\0')
                return access("/proc/swaps", F_OK) >= 0;
        group += strlen("0::");
        path = text_format("/sys/fs/cgroup%.*s/memory.swap.max", (int) strcspn(group, "\n"), group);
        if (!path)
                return false;
        return access(path, F_OK) >= 0;
}

bool swap_is_limitable(int cgroup_version) {
        if (cgroup_version == 1)
                return access("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", F_OK) >= 0;
        return cgroup_has_controller("memory") && own_cgroup_has_swap_limit();
}

int64_t container_swap_bytes(const BundleConfig *config, const PodSpec *spec,
                             const Container *container, int cgroup_version) {
        int64_t request = container->resources.requests.memory.value;
        int64_t limit = container_memory_limit(spec, container);

        if (!config->has_limited_swap || cgroup_version != 2 ||
            pod_qos_class(spec) != QOS_BURSTABLE || pod_is_critical(spec))
                return 0;
        if (request <= 0 || request == limit || config->memory_capacity <= 0)
                return 0;
        return (int64_t) ((double) MIN(request, config->memory_capacity) /
                          (double) config->memory_capacity * (double) config->swap_capacity);
}
