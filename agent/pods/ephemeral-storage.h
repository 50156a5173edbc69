/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which directories count for the limits of local ephemeral storage (sizeLimit of emptyDirs,
 * ephemeral-storage of containers), and whether a limit is exceeded. storage-monitor.c measures.
 * Pure. */

#include "agent/bundle/bundle.h"

/* Whether the pod has any such limit. */
bool pod_has_storage_limit(const PodSpec *spec);

/* The directories that count, in an order that storage_limit_message() knows: an emptyDir each, the
 * pod's files of /etc, then of each container its writable layers and its logs. 0 or -ENOMEM. */
int pod_storage_paths(const BundleConfig *config, const Pod *pod, char ***ret);

/* 'bytes' are what those directories hold. The kubelet's message about the first limit that is
 * exceeded, in memory that the caller frees, or NULL. */
char *storage_limit_message(const PodSpec *spec, const uint64_t *bytes, size_t n);
