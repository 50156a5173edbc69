/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The usage of the node, a pod or a container, for /stats/summary and /metrics/cadvisor: pods/
 * collects it, metrics/ prints it. Strings are borrowed. */

#include "common/cgroup-usage.h"
#include "common/network-namespace.h"
#include "common/process-usage.h"

#include <stdbool.h>

typedef struct UsageSample {
        const char *system;    /* "kubelet", "runtime", "pods": a system container; otherwise
                                * NULL */
        const char *namespace; /* NULL: of the node */
        const char *pod;
        const char *uid;
        const char *container; /* NULL: of the pod */
        const char *container_id;
        const char *image;
        const char *cgroup;
        uint64_t started_at; /* realtime; 0: unknown */
        CgroupStatistics statistics;
        CgroupDetails details; /* only if requested */

        /* Process counts of a container, if they are requested and known, at that time (realtime);
         * otherwise NULL.
         */
        const ProcessUsage *processes;
        uint64_t processes_at;

        /* For the node, and for a pod with its own network. */
        const NetworkInterfaceUsage *interfaces;
        size_t n_interfaces;
} UsageSample;

/* A file system, from statvfs(3). */
typedef struct FilesystemUsage {
        uint64_t capacity, available, used; /* bytes */
        uint64_t inodes, inodes_free;
} FilesystemUsage;

/* The capacity and the usage of the node as a whole. */
typedef struct NodeStats {
        FilesystemUsage filesystem;       /* to which pods and containers write */
        FilesystemUsage image_filesystem; /* may be the same one */
        uint64_t pids_max, pids;
} NodeStats;

/* The disk usage of a directory of a container or a pod. */
typedef enum StorageKind {
        STORAGE_ROOTFS,    /* of a container: its writable layers */
        STORAGE_LOGS,      /* of a container */
        STORAGE_VOLUME,    /* of a pod: an emptyDir on disk */
        STORAGE_EPHEMERAL, /* of a pod: all of these */
} StorageKind;

typedef struct StorageSample {
        StorageKind kind;
        const char *name;                    /* name of the volume; otherwise NULL */
        const char *claim, *claim_namespace; /* for a volume; NULL: it has no claim */
        bool has_health, is_abnormal;        /* for a volume */
        bool is_measured; /* the following members are known, at 'taken_at' (realtime) */
        uint64_t used;    /* bytes */
        uint64_t inodes_used;
        uint64_t taken_at;
} StorageSample;
