/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Admission of a pod by the node, as in the kubelet: node selector and node affinity, host ports,
 * node pressure, and for pods of an API server also operating system, sysctls and resources; other
 * pods are preempted for a critical one (pod-preemption.h). Taints are left to the scheduler. A
 * rejected pod has status Failed; unlike in the kubelet, a pod from a file may be admitted later,
 * when the node's labels or conditions have changed. Running pods are not affected. */

#include "agent/pods/pod/pod-instance.h"

typedef struct PodAdmission {
        char *rejection_reason; /* NULL: admitted, or not checked yet */
        char *rejection_message;
        bool is_rejection_new;   /* the message differs from the previous one, so it is reported */
        uint64_t mismatch_since; /* boot time since which the node's labels do not match; 0: they
                                  * match */
        bool awaits_release;     /* waits for a host port, or for the resources of pods that are
                                  * being preempted: checked again when a pod has stopped */
        bool awaits_devices;     /* its devices are absent, or no plugin provides them yet */
        bool has_preempted;      /* pods are being stopped for it: its requests already count */
        bool is_waiting;         /* for labels that may still arrive; the pod is checked again soon
                                  */
} PodAdmission;

/* Whether the node admits the pod; if not, sets the reason in 'admission', logs it and records an
 * event.
 */
bool pod_admission_check(PodAdmission *admission, const PodInstance *pod);

/* Whether containers of the pod have started on this node before, as their logs show. */
bool pod_has_run_before(const PodInstance *pod);

/* The message of a rejection for its event, which is shorter, as in the kubelet. */
const char *pod_admission_event_message(const PodAdmission *admission);
void pod_admission_done(PodAdmission *admission);
