/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which directories count for the limits of local ephemeral storage (sizeLimit of emptyDirs,
 * ephemeral-storage of containers), and whether a limit is exceeded. storage-monitor.c measures.
 * Pure. */

#include "agent/bundle/bundle.h"

/* The output of 'mainstay-shim usage' if directories are nested too deeply: a container must not be
 * able to hide its writes that way. */
#define DISK_USAGE_UNKNOWN UINT64_MAX

/* Whether the pod has any such limit. */
bool pod_has_storage_limit(const PodSpec *spec);

/* The directories that count, in the order that find_exceeded_storage_limit() expects: each
 * emptyDir, the pod's /etc files, then for each container its writable layers and its logs. 0 or
 * -ENOMEM. */
int pod_storage_paths(const BundleConfig *config, const Pod *pod, char ***ret);

/* 'bytes' are the sizes of those directories, or DISK_USAGE_UNKNOWN. Returns the kubelet's message
 * about the first limit that is exceeded, or a message that a limit may be exceeded; the caller
 * frees it. NULL: none is. */
char *find_exceeded_storage_limit(const PodSpec *spec, const uint64_t *bytes, size_t n);
