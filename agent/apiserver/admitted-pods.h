/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The last pod of each DaemonSet that the API server has bound to this node, after the pod is gone:
 * the proof that its namespace admits such a pod.
 *
 * A user may write any owner reference into a pod, but the pod has passed the complete admission of
 * the API server in its namespace: quotas, webhooks, Pod Security and so on. So it proves exactly
 * what this node cannot check itself, for a pod with the same spec in the same namespace,
 * regardless of its creator. While a pod is bound it is its own proof, in the pod's record. */

#include "agent/apiserver/cache.h"
#include "agent/model/daemonset.h"

typedef struct AdmittedPods AdmittedPods;

/* Reads which pods there are. 0 or -ENOMEM. */
int admitted_pods_new(ApiServerCache *cache, AdmittedPods **ret);
AdmittedPods *admitted_pods_free(AdmittedPods *pods);

/* The pod is not bound to this node any more. Pods that no DaemonSet controls are ignored. There is
 * a limit: then one of the namespace with the most pods makes room. */
void admitted_pods_add(AdmittedPods *pods, const Pod *pod);

/* The last pod of the set: 1 with a pod that the caller frees; 0: none is known; -ENOMEM. */
int admitted_pods_find(const AdmittedPods *pods, const DaemonSet *set, Pod **ret);

/* Forgets the pods of the sets that are not needed. */
void admitted_pods_retain(AdmittedPods *pods, bool (*is_needed)(const char *uid, void *userdata),
                          void *userdata);

/* They are of another cluster. */
void admitted_pods_forget(AdmittedPods *pods);
