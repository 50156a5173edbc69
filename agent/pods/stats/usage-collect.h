/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Walks over the node, its pods and their running containers with the usage of each, for
 * /stats/summary and /metrics/cadvisor. Printing is metrics/'s. */

#include "agent/model/usage.h"
#include "agent/pods/manager/pod-manager.h"
#include "agent/pods/stats/storage-usage.h"
#include "agent/pods/stats/system-containers.h"

/* Samples are borrowed during the call. */
typedef struct UsageVisitor {
        /* The node; its system containers; then each pod, and behind it its containers. */
        void (*on_usage)(const UsageSample *sample, void *userdata);
        /* Those of the container or the pod that was the last. NULL: storage is not requested. */
        void (*on_storage)(const StorageSample *sample, const FilesystemUsage *filesystem,
                           void *userdata);
        const StorageUsage *storage; /* NULL without on_storage */
        const SystemContainers *system;
        bool has_network;
        bool has_details; /* with the details of cgroups, open descriptors, and QoS classes */
        void *userdata;
} UsageVisitor;

/* Those of the file system that contains the directory; unchanged if it cannot be read. */
void read_filesystem_usage(const char *directory, FilesystemUsage *ret);

/* Unreadable values are omitted. 0 or -ENOMEM. */
int collect_usage(PodManager *pods, const BundleConfig *config, const UsageVisitor *visitor);
