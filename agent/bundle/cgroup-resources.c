/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the cgroup values of pods and containers from resources.requests and .limits: cpu.shares
 * or cpu.weight, cpu.max, memory.max, memory.swap.max, pids.max; and oom_score_adj. memory.high is
 * not set (MemoryQoS). */

#include "agent/bundle/cgroup-resources.h"

#include "agent/bundle/swap.h"
#include "common/cleanup.h"
#include "common/saturating.h"
#include "common/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>

enum {
        SHARES_MIN = 2,
        SHARES_MAX = 262144,
        QUOTA_MIN_USEC = 1000
};

uint64_t cpu_shares(int64_t milli_cpu) {
        if (milli_cpu <= 0)
                return SHARES_MIN;
        if (milli_cpu >= SHARES_MAX)
                return SHARES_MAX;
        return MIN(MAX((uint64_t) milli_cpu * 1024 / 1000, SHARES_MIN), SHARES_MAX);
}

uint64_t cpu_weight_of_group(uint64_t shares) {
        if (shares >= SHARES_MAX)
                return 10000;
        return 1 + (MAX(shares, SHARES_MIN) - SHARES_MIN) * 9999 / (SHARES_MAX - SHARES_MIN);
}

uint64_t cpu_weight_of_container(uint64_t shares) {
        double l, exponent;

        if (shares <= SHARES_MIN)
                return 1;
        if (shares >= SHARES_MAX)
                return 10000;
        /* The conversion of shares to weight that the runtimes use (opencontainers/cgroups): a
         * curve through (2, 1), (1024, 100), (262144, 10000). */
        l = log2((double) shares);
        exponent = (l * l + 125 * l) / 612.0 - 7.0 / 34.0;
        return (uint64_t) ceil(pow(10, exponent));
}

int64_t cpu_quota_usec(int64_t milli_cpu) {
        if (milli_cpu <= 0)
                return 0;
        if (milli_cpu > INT64_MAX / CPU_PERIOD_USEC)
                return 0;
        return MAX(milli_cpu * CPU_PERIOD_USEC / 1000, QUOTA_MIN_USEC);
}

static int64_t container_memory_request(const Container *container) {
        return container->resources.requests.memory.value;
}

static int64_t container_cpu_request(const Container *container) {
        return container->resources.requests.cpu.milli;
}

static int64_t container_own_memory_limit(const Container *container) {
        return container->resources.limits.memory.value;
}

static int64_t container_own_cpu_limit(const Container *container) {
        return container->resources.limits.cpu.milli;
}

/* If a pod-level request exceeds the sum of the requests of its containers, the rest is divided
 * among the main containers and sidecars. */
static int64_t memory_share(const PodSpec *spec) {
        int64_t rest = pod_level_resources(spec)->requests.memory.value -
                       pod_aggregate_amount(spec, container_memory_request);
        const Container *container;
        int64_t n = 0;

        pod_foreach_container(container, spec) {
                ContainerRole role = container_role(spec, container);

                n += role == ROLE_MAIN || role == ROLE_SIDECAR;
        }
        return rest > 0 && n > 0 ? rest / n : 0;
}

static int64_t min_main_memory_request(const PodSpec *spec) {
        int64_t least = INT64_MAX;

        for (size_t i = 0; i < spec->containers.n; i++)
                least = MIN(least, container_memory_request(&spec->containers.items[i]));
        return least;
}

int oom_score_adj(const PodSpec *spec, const Container *container, int64_t memory_capacity) {
        int64_t request, adjust;

        if (spec->priority_class_name && streq(spec->priority_class_name, "system-node-critical"))
                return -997;
        switch (pod_qos_class(spec)) {
        case QOS_GUARANTEED:
                return -997;
        case QOS_BEST_EFFORT:
                return 1000;
        case QOS_BURSTABLE:
        case N_QOS_CLASSES:
                break;
        }
        request = container_memory_request(container);
        /* The OOM killer must not choose a sidecar before the containers that it serves. */
        if (container_role(spec, container) == ROLE_SIDECAR)
                request = MAX(request, min_main_memory_request(spec));
        request += memory_share(spec);
        if (memory_capacity <= 0 || request >= memory_capacity)
                return 3;
        adjust = 1000 - (request <= INT64_MAX / 1000 ? 1000 * request / memory_capacity
                                                     : request / (memory_capacity / 1000));
        return (int) MAX(3, MIN(adjust, 999));
}

static const char *qos_directory(QosClass qos) {
        static const char *const names[N_QOS_CLASSES] = {
                [QOS_GUARANTEED] = "",
                [QOS_BURSTABLE] = "/burstable",
                [QOS_BEST_EFFORT] = "/besteffort",
        };

        return names[qos];
}

char *qos_cgroup_path(const char *cgroup_root, QosClass qos) {
        return text_format("%s/kubepods%s", streq(cgroup_root, "/") ? "" : cgroup_root,
                           qos_directory(qos));
}

char *pod_cgroup_path(const char *cgroup_root, QosClass qos, const char *uid) {
        cleanup_free char *parent = qos_cgroup_path(cgroup_root, qos);

        return parent ? text_format("%s/pod%s", parent, uid) : NULL;
}

char *pod_slice_name(QosClass qos, const char *uid) {
        const char *directory = qos_directory(qos);
        char *name = text_format("kubepods%s%s-pod%s.slice", directory[0] ? "-" : "",
                                 directory[0] ? directory + 1 : "", uid);

        if (!name)
                return NULL;
        /* A dash in the name of a slice separates levels; the dashes of the UID do not. */
        for (char *c = strstr(name, "-pod") + 4; *c; c++)
                if (*c == '-')
                        *c = '_';
        return name;
}

int64_t pod_milli_cpu_request(const PodSpec *spec) {
        const Quantity *own = &pod_level_resources(spec)->requests.cpu;
        int64_t request = quantity_is_set(own) ? own->milli
                                               : pod_aggregate_amount(spec, container_cpu_request);

        return add_amounts_saturating(request, pod_overhead(spec)->cpu.milli);
}

/* The sum of the limits of containers that run together, or 0 if one is unlimited. */
static int64_t aggregate_limits(const PodSpec *spec, container_amount_t limit) {
        const Container *container;

        pod_foreach_container(container, spec)
                if (limit(container) <= 0 && container_role(spec, container) != ROLE_EPHEMERAL)
                        return 0;
        return pod_aggregate_amount(spec, limit);
}

static int64_t pod_milli_cpu_limit(const PodSpec *spec) {
        int64_t own = pod_level_resources(spec)->limits.cpu.milli;
        int64_t limit = own > 0 ? own : aggregate_limits(spec, container_own_cpu_limit);

        return limit > 0 ? add_amounts_saturating(limit, pod_overhead(spec)->cpu.milli) : 0;
}

int64_t pod_memory_limit(const PodSpec *spec) {
        int64_t own = pod_level_resources(spec)->limits.memory.value;
        int64_t limit = own > 0 ? own : aggregate_limits(spec, container_own_memory_limit);

        return limit > 0 ? add_amounts_saturating(limit, pod_overhead(spec)->memory.value) : 0;
}

static void set_cgroup_value(CgroupValue *value, const char *controller, const char *file,
                             const char *format, ...) printf_like(4, 5);

static void set_cgroup_value(CgroupValue *value, const char *controller, const char *file,
                             const char *format, ...) {
        va_list ap;

        value->controller = controller;
        value->file = file;
        va_start(ap, format);
        (void) vsnprintf(value->value, sizeof(value->value), format, ap);
        va_end(ap);
}

/* cpu.max, or its equivalent on cgroup v1. Returns the number of values, 0 without a quota. */
static size_t cpu_quota_values(int64_t quota, bool v2, CgroupValue ret[]) {
        if (quota <= 0)
                return 0;
        if (v2) {
                set_cgroup_value(&ret[0], "cpu", "cpu.max", "%" PRId64 " %d", quota,
                                 CPU_PERIOD_USEC);
                return 1;
        }
        set_cgroup_value(&ret[0], "cpu", "cpu.cfs_period_us", "%d", CPU_PERIOD_USEC);
        set_cgroup_value(&ret[1], "cpu", "cpu.cfs_quota_us", "%" PRId64, quota);
        return 2;
}

size_t pod_cgroup_values(const PodSpec *spec, int cgroup_version, int64_t pod_pids_limit,
                         CgroupValue ret[CGROUP_VALUES_MAX]) {
        bool v2 = cgroup_version == 2;
        uint64_t shares = cpu_shares(pod_milli_cpu_request(spec));
        int64_t quota = cpu_quota_usec(pod_milli_cpu_limit(spec));
        int64_t memory = pod_memory_limit(spec);
        size_t n = 0;

        if (v2)
                set_cgroup_value(&ret[n++], "cpu", "cpu.weight", "%" PRIu64,
                                 cpu_weight_of_group(shares));
        else
                set_cgroup_value(&ret[n++], "cpu", "cpu.shares", "%" PRIu64, shares);
        n += cpu_quota_values(quota, v2, &ret[n]);
        if (memory > 0)
                set_cgroup_value(&ret[n++], "memory", v2 ? "memory.max" : "memory.limit_in_bytes",
                                 "%" PRId64, memory);
        if (pod_pids_limit > 0)
                set_cgroup_value(&ret[n++], "pids", "pids.max", "%" PRId64, pod_pids_limit);
        return n;
}

size_t container_cgroup_values(const BundleConfig *config, const PodSpec *spec,
                               const Container *container, int cgroup_version,
                               CgroupValue ret[CGROUP_VALUES_MAX]) {
        uint64_t shares = cpu_shares(container_milli_cpu_request(spec, container));
        int64_t quota = cpu_quota_usec(container_milli_cpu_limit(spec, container));
        int64_t memory = container_memory_limit(spec, container);
        bool v2 = cgroup_version == 2;
        size_t n = 0;

        if (v2)
                set_cgroup_value(&ret[n++], "cpu", "cpu.weight", "%" PRIu64,
                                 cpu_weight_of_container(shares));
        else
                set_cgroup_value(&ret[n++], "cpu", "cpu.shares", "%" PRIu64, shares);
        n += cpu_quota_values(quota, v2, &ret[n]);
        if (memory > 0)
                set_cgroup_value(&ret[n++], "memory", v2 ? "memory.max" : "memory.limit_in_bytes",
                                 "%" PRId64, memory);
        if (config->can_limit_swap && v2)
                set_cgroup_value(&ret[n++], "memory", "memory.swap.max", "%" PRId64,
                                 container_swap_bytes(config, spec, container, cgroup_version));
        else if (config->can_limit_swap)
                set_cgroup_value(&ret[n++], "memory", "memory.memsw.limit_in_bytes", "%" PRId64,
                                 memory > 0 ? memory : -1);
        return n;
}
