/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Admission of a pod by the node, as in the kubelet: node selector and node affinity, ports
 * of the host, node pressure, and of an API server's pods also operating system, sysctls and
 * resources; for a critical one other pods are preempted (pod-preemption.h). Taints are the
 * scheduler's matter. A rejected pod has status Failed; unlike the kubelet we admit a pod of a file
 * later, when the node's labels or conditions have changed. Running pods stay. */

#include "agent/pods/pod/pod-instance.h"

typedef struct PodAdmission {
        char *rejection_reason; /* NULL: admitted, or not checked yet */
        char *rejection_message;
        bool is_rejection_new;   /* the message differs from the one before: it is reported */
        uint64_t mismatch_since; /* boot time: the node's labels do not match; 0: they do */
        bool awaits_release;     /* of a host port, or of the resources of pods that are preempted:
                                  * checked again when a pod has stopped */
        bool awaits_devices;     /* they were not there, or no plugin provides them yet */
        bool has_preempted;      /* pods are stopped for it: its requests already count */
        bool is_waiting;         /* for labels that may be about to arrive: to be checked again
                                  * soon */
} PodAdmission;

/* Whether the node admits the pod; if not, reports the reason in 'admission', logs it and records
 * an event.
 */
bool pod_admission_check(PodAdmission *admission, const PodInstance *pod);

/* Containers of the pod have started on this node before, as their logs show. */
bool pod_has_run_before(const PodInstance *pod);

/* The message of a rejection for its event, which the kubelet keeps shorter. */
const char *pod_admission_event_message(const PodAdmission *admission);
void pod_admission_done(PodAdmission *admission);
