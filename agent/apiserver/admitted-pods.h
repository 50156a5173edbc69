/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For each DaemonSet, the last pod that the API server has bound to this node, kept after the pod
 * is gone: the proof that its namespace admits such a pod.
 *
 * A user may write any owner reference into a pod, but the pod has passed the complete admission of
 * the API server in its namespace: quotas, webhooks, Pod Security and so on. So it proves exactly
 * those conditions that this node cannot check itself, for any pod with the same spec in the same
 * namespace, regardless of who creates that pod. While a pod is bound, its own record is the proof.
 */

#include "agent/apiserver/cache.h"
#include "agent/model/daemonset.h"

typedef struct AdmittedPods AdmittedPods;

/* Reads the list of stored pods. 0 or -ENOMEM. */
int admitted_pods_new(ApiServerCache *cache, AdmittedPods **ret);
AdmittedPods *admitted_pods_free(AdmittedPods *pods);

/* Stores a pod that is no longer bound to this node. Pods that no DaemonSet controls are ignored.
 * When the limit is reached, a pod of the namespace with the most pods is dropped. */
void admitted_pods_add(AdmittedPods *pods, const Pod *pod);

/* The last pod of the set: 1 with a pod that the caller frees; 0: none is known; -ENOMEM. */
int admitted_pods_find(const AdmittedPods *pods, const DaemonSet *set, Pod **ret);

/* Forgets the pods of the sets that are not needed. */
void admitted_pods_retain(AdmittedPods *pods, bool (*is_needed)(const char *uid, void *userdata),
                          void *userdata);

/* Removes all pods, because they belong to another cluster. */
void admitted_pods_forget(AdmittedPods *pods);
