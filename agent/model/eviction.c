/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/eviction.h"

#include "common/file.h"
#include "common/macros.h"
#include "common/strv.h"

#include <stdio.h>
#include <stdlib.h>

/* clang-format off */
const EvictionSignalInfo eviction_signals[N_EVICTION_SIGNALS] = {
        [EVICTION_MEMORY]              = { "memory.available",            "memory",            NODE_MEMORY_PRESSURE, false },
        [EVICTION_ALLOCATABLE_MEMORY]  = { "allocatableMemory.available", "memory",            NODE_MEMORY_PRESSURE, false },
        [EVICTION_NODE_FS]             = { "nodefs.available",            "ephemeral-storage", NODE_DISK_PRESSURE,   false },
        [EVICTION_NODE_FS_INODES]      = { "nodefs.inodesFree",           "inodes",            NODE_DISK_PRESSURE,   true  },
        [EVICTION_IMAGE_FS]            = { "imagefs.available",           "ephemeral-storage", NODE_DISK_PRESSURE,   false },
        [EVICTION_IMAGE_FS_INODES]     = { "imagefs.inodesFree",          "inodes",            NODE_DISK_PRESSURE,   true  },
        [EVICTION_CONTAINER_FS]        = { "containerfs.available",       "ephemeral-storage", NODE_DISK_PRESSURE,   false },
        [EVICTION_CONTAINER_FS_INODES] = { "containerfs.inodesFree",      "inodes",            NODE_DISK_PRESSURE,   true  },
        [EVICTION_PIDS]                = { "pid.available",               "pids",              NODE_PID_PRESSURE,    true  },
};

const NodeConditionInfo node_conditions[N_NODE_CONDITIONS] = {
        [NODE_MEMORY_PRESSURE] = {
                "MemoryPressure", "node.kubernetes.io/memory-pressure",
                "KubeletHasInsufficientMemory", "kubelet has insufficient memory available",
                "KubeletHasSufficientMemory", "kubelet has sufficient memory available",
        },
        [NODE_DISK_PRESSURE] = {
                "DiskPressure", "node.kubernetes.io/disk-pressure",
                "KubeletHasDiskPressure", "kubelet has disk pressure",
                "KubeletHasNoDiskPressure", "kubelet has no disk pressure",
        },
        [NODE_PID_PRESSURE] = {
                "PIDPressure", "node.kubernetes.io/pid-pressure",
                "KubeletHasInsufficientPID", "kubelet has insufficient PID available",
                "KubeletHasSufficientPID", "kubelet has sufficient PID available",
        },
        [NODE_READONLY_FILESYSTEM] = {
                "ReadonlyFilesystem", NULL,
                "FilesystemIsReadOnly", "the file system of the state directory is read-only: running pods continue, but no pod starts and nothing is recorded",
                "FilesystemIsNotReadOnly", "the file system of the state directory is writable",
        },
};
/* clang-format on */

EvictionSignal eviction_signal_by_name(const char *name) {
        EvictionSignal signal = 0;

        while (signal < N_EVICTION_SIGNALS && !streq(eviction_signals[signal].name, name))
                signal++;
        return signal;
}

NodeCondition node_condition_by_name(const char *name) {
        NodeCondition condition = 0;

        while (condition < N_NODE_CONDITIONS && !streq(node_conditions[condition].name, name))
                condition++;
        return condition;
}

int64_t eviction_amount_of(const EvictionAmount *amount, int64_t capacity) {
        int64_t share = (int64_t) ((double) capacity * amount->fraction);

        if (amount->fraction <= 0)
                return amount->quantity;
        return amount->quantity > 0 ? MIN(amount->quantity, share) : share;
}

char *format_condition_list(unsigned conditions) {
        const char *before = "[";
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (NodeCondition c = 0; c < N_NODE_CONDITIONS; c++)
                if (conditions & NODE_CONDITION_BIT(c)) {
                        (void) fprintf(out, "%s%s", before, node_conditions[c].name);
                        before = " ";
                }
        (void) fputc(']', out);
        return memstream_finish(out, &text);
}

void eviction_candidate_done(EvictionCandidate *candidate) {
        for (size_t i = 0; candidate->containers && i < candidate->n_containers; i++) {
                free(candidate->containers[i].name);
                free(candidate->containers[i].cgroup);
                free(candidate->containers[i].memory_request_text);
                free(candidate->containers[i].storage_request_text);
        }
        free(candidate->containers);
        strv_free(candidate->storage_paths);
        free(candidate->cgroup);
        free(candidate->uid);
        *candidate = (EvictionCandidate){ 0 };
}
