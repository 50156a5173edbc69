/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Node-pressure eviction with the kubelet's names: signals, thresholds, and the conditions and
 * taints of the node. Plain data; eviction/ acts on it. */

#include "common/macros.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum EvictionSignal {
        EVICTION_MEMORY,
        EVICTION_ALLOCATABLE_MEMORY,
        EVICTION_NODE_FS,
        EVICTION_NODE_FS_INODES,
        EVICTION_IMAGE_FS,
        EVICTION_IMAGE_FS_INODES,
        EVICTION_CONTAINER_FS,
        EVICTION_CONTAINER_FS_INODES,
        EVICTION_PIDS,
        N_EVICTION_SIGNALS,
} EvictionSignal;

typedef enum NodeCondition {
        NODE_MEMORY_PRESSURE,
        NODE_DISK_PRESSURE,
        NODE_PID_PRESSURE,
        NODE_READONLY_FILESYSTEM,
        N_NODE_CONDITIONS,
} NodeCondition;

/* A bit in a set of conditions. */
#define NODE_CONDITION_BIT(condition) (1U << (condition))

/* The conditions that prevent new pods have thresholds and taints. ReadonlyFilesystem, a condition
 * of the node problem detector, is only reported, and only if it is or was true. */
#define NODE_PRESSURE_CONDITIONS                                                             \
        (NODE_CONDITION_BIT(NODE_MEMORY_PRESSURE) | NODE_CONDITION_BIT(NODE_DISK_PRESSURE) | \
         NODE_CONDITION_BIT(NODE_PID_PRESSURE))

typedef struct EvictionSignalInfo {
        const char *name;     /* "memory.available" */
        const char *resource; /* "memory", for messages */
        NodeCondition condition;
        bool is_counted; /* inodes and processes: a count, not bytes */
} EvictionSignalInfo;

typedef struct NodeConditionInfo {
        const char *name;  /* "MemoryPressure" */
        const char *taint; /* key of the taint; its effect is NoSchedule. NULL: none */
        const char *reason_true, *message_true;
        const char *reason_false, *message_false;
} NodeConditionInfo;

extern const EvictionSignalInfo eviction_signals[N_EVICTION_SIGNALS];
extern const NodeConditionInfo node_conditions[N_NODE_CONDITIONS];

/* N_EVICTION_SIGNALS or N_NODE_CONDITIONS if the name is unknown. */
EvictionSignal eviction_signal_by_name(const char *name);
NodeCondition node_condition_by_name(const char *name);

/* "100Mi" or "10%": a share of the capacity if the fraction is not 0; if both are set, the smaller
 * amount applies. */
typedef struct EvictionAmount {
        int64_t quantity;
        double fraction;
} EvictionAmount;

/* In the same unit as the capacity. */
int64_t eviction_amount_of(const EvictionAmount *amount, int64_t capacity);

typedef struct EvictionThreshold {
        EvictionSignal signal;
        EvictionAmount value; /* the threshold is met when less than this is available … */
        uint64_t grace_usec;  /* … for this long (evictionSoftGracePeriod); 0: a hard threshold */
        EvictionAmount min_reclaim; /* evictionMinimumReclaim: the additional amount that must
                                     * become available */
} EvictionThreshold;

enum {
        EVICTION_THRESHOLDS_MAX = 2 * N_EVICTION_SIGNALS, /* one hard and one soft threshold per
                                                           * signal */
        SYSTEM_CRITICAL_PRIORITY =
                2000000000, /* pods with this priority or a higher one are never evicted */
};

typedef struct EvictionPolicy {
        EvictionThreshold thresholds[EVICTION_THRESHOLDS_MAX];
        size_t n_thresholds;
        uint64_t transition_usec; /* evictionPressureTransitionPeriod: how long a condition stays
                                     true after it was last observed */
        int64_t max_pod_grace_seconds; /* evictionMaxPodGracePeriod: for pods evicted by a soft
                                          threshold; < 0: the pod's own */
        bool has_memcg_notification;
} EvictionPolicy;

/* A pod that may be evicted for node pressure. The caller measures its usage. Everything is
 * owned. */
typedef struct EvictionContainer {
        char *name;
        char *cgroup; /* NULL: it has no running process */
        int64_t memory_request;
        int64_t storage_request;
        char *memory_request_text; /* as in the spec; NULL: "0" */
        char *storage_request_text;
} EvictionContainer;

typedef struct EvictionCandidate {
        char *uid;
        int64_t priority;
        char *cgroup;
        int64_t memory_request;
        int64_t storage_request;
        EvictionContainer *containers;
        size_t n_containers;
        char **storage_paths; /* its emptyDirs, its files in /etc, then two paths per container:
                                 writable layer, logs */
} EvictionCandidate;

void eviction_candidate_done(EvictionCandidate *candidate);

/* "[MemoryPressure DiskPressure]" for a non-empty set; the caller frees it; NULL: out of memory. */
char *format_condition_list(unsigned conditions);

/* The node's conditions, each with the realtime of its last transition. */
typedef struct NodeConditions {
        unsigned set;
        uint64_t since[N_NODE_CONDITIONS];
} NodeConditions;
