/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The mirror pod of a static pod (kubelet: pkg/kubelet/pod, mirror_client) as it is created.
 * pod-api-request.h decides when it is created and deleted; apiserver/pod-status-writer.h sends the
 * requests. */

#include <jansson.h>

/* The v1.Pod to create for a static pod, owned by the Node. 'pod' is the static pod's own v1.Pod,
 * which is modified; 'hash' is the hash of its manifest. Fields that a node may not set (service
 * accounts, and volumes that refer to API objects) are omitted, with the mounts and variables that
 * need them, and so are fields that the server computes itself. The caller frees the result; NULL:
 * out of memory, or the JSON is not a pod. */
char *mirror_pod_build(json_t *pod, const char *hash, const char *node_name, const char *node_uid);
