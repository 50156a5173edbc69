/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Visits the node, its pods and their running containers, and reports the usage of each, for
 * /stats/summary and /metrics/cadvisor. metrics/ prints the usage. */

#include "agent/model/usage.h"
#include "agent/pods/manager/pod-manager.h"
#include "agent/pods/stats/storage-usage.h"
#include "agent/pods/stats/system-containers.h"

/* Samples are borrowed during the call. */
typedef struct UsageVisitor {
        /* Called for the node, its system containers, then each pod, followed by its containers. */
        void (*on_usage)(const UsageSample *sample, void *userdata);
        /* Storage of the container or pod that was reported last. NULL: storage is not
         * requested. */
        void (*on_storage)(const StorageSample *sample, const FilesystemUsage *filesystem,
                           void *userdata);
        CsiManager *csi;             /* its volumes are reported with on_storage; or NULL */
        const StorageUsage *storage; /* NULL without on_storage */
        const SystemContainers *system;
        bool has_network;
        bool has_details; /* with the details of cgroups, open descriptors, and QoS classes */
        void *userdata;
} UsageVisitor;

/* The usage of the file system that contains the directory; unchanged if it cannot be read. */
void read_filesystem_usage(const char *directory, FilesystemUsage *ret);

/* The usage of a pod's volume, if a CSI driver reports it; the caller frees the claim. Returns
 * whether it is known. */
bool read_csi_usage(CsiManager *csi, const BundleConfig *config, const Pod *pod,
                    const Volume *volume, StorageSample *ret, FilesystemUsage *ret_filesystem,
                    char **ret_claim);

/* Unreadable values are omitted. 0 or -ENOMEM. */
int collect_usage(PodManager *pods, const BundleConfig *config, const UsageVisitor *visitor);
