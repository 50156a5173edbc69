/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Mirror pods: the API server's view of a static pod (kubelet: pkg/kubelet/pod, mirror_client). */

#include <jansson.h>

/* The v1.Pod to create for a static pod, owned by the Node. 'pod' is the static pod's own v1.Pod
 * and is changed; 'hash' is its UID. Left out is what a node may not set (service accounts, and
 * volumes that refer to API objects), with the mounts and variables that need it, and what the
 * server computes itself. The caller frees the result; NULL on out of memory, or for JSON that is
 * not a pod. */
char *mirror_pod_build(json_t *pod, const char *hash, const char *node_name, const char *node_uid);
