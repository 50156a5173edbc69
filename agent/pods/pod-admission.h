/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Admission of a pod by the node, as in the kubelet: node selector and node affinity, and node
 * pressure. Taints are the scheduler's matter. A rejected pod has status Failed; unlike the kubelet
 * we admit it later, when the node's labels or conditions have changed. Running pods stay. */

#include "agent/pods/pod-instance.h"

typedef struct PodAdmission {
        const char *rejection_reason; /* NULL: admitted, or not asked yet */
        char *rejection_message;
} PodAdmission;

/* Whether the node admits the pod; if not, says why in 'admission', logs it and records an event.
 */
bool pod_admission_check(PodAdmission *admission, const PodInstance *pod);
void pod_admission_done(PodAdmission *admission);
