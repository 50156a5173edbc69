/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Mirror pods: how a pod that no API server wanted is seen there (kubelet: pkg/kubelet/pod,
 * mirror_client). */

/* The v1.Pod to create for a pod of ours ('json' as pod_to_json() has it, 'hash' its UID), owned by
 * the node. What a node may not say of a pod (service accounts, and what refers to objects of an
 * API server) is left out, with the mounts and variables that need it; so are the numbers that the
 * server works out itself. Memory that the caller frees; NULL where memory ends, or for no JSON. */
char *mirror_pod_build(const char *json, const char *hash, const char *node_name,
                       const char *node_uid);
