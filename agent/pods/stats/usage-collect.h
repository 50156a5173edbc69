/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Walks over the node, its pods and their running containers with what each uses, for
 * /stats/summary and /metrics/cadvisor. Printing is metrics/'s. */

#include "agent/model/usage.h"
#include "agent/pods/manager/pod-manager.h"
#include "agent/pods/stats/storage-usage.h"
#include "agent/pods/stats/system-containers.h"

/* Samples are borrowed during the call. */
typedef struct UsageVisitor {
        /* The node; its system containers; then each pod, and behind it its containers. */
        void (*on_usage)(const UsageSample *sample, void *userdata);
        /* Of the container or the pod that was the last. NULL: storage is not asked for. */
        void (*on_storage)(const StorageSample *sample, const FilesystemUsage *filesystem,
                           void *userdata);
        const StorageUsage *storage; /* NULL without on_storage */
        const SystemContainers *system;
        bool has_network;
        bool has_details; /* with the details of cgroups, open descriptors, and QoS classes */
        void *userdata;
} UsageVisitor;

/* Of the file system that the directory is on; unchanged where it cannot be read. */
void read_filesystem_usage(const char *directory, FilesystemUsage *ret);

/* What cannot be read is left out. 0 or -ENOMEM. */
int collect_usage(PodManager *pods, const BundleConfig *config, const UsageVisitor *visitor);
