/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The status of a pod (v1.PodStatus): statuses of containers, phase, conditions, addresses. */

#include "agent/pods/container/pod-containers.h"
#include "agent/pods/pod/pod-admission.h"
#include "agent/pods/pod/pod-failure.h"

/* The facts from which the status is computed. */
typedef struct PodStatusInput {
        const PodInstance *pod;
        const PodContainers *containers;
        const PodFailure *failure;
        const PodAdmission *admission;
        const char *awaited_pods; /* the pods that this pod waits for; this and the next three may
                                   * be NULL */
        const char *last_error;   /* why the sandbox is not ready */
        const char *edit_error;   /* why the edited pod cannot start */
        const char *resize_error; /* why the cgroups do not match the spec */
        uint64_t deletion_time;   /* 0: not being terminated */
        uint64_t now;             /* realtime */
        bool is_syncing;          /* a restarted agent waits for the complete state … */
        bool is_provisional;      /* … so conditions may be wrong */
        bool has_sandbox;
        bool is_sandbox_ready;
} PodStatusInput;

/* Computes the status from the facts and the previous status (NULL: there is none), which provides
 * the transition times of conditions, and the addresses of a pod that has terminated and has no
 * sandbox. 0 with a reference to the previous status if nothing has changed, otherwise to a new
 * status with the next version; or -ENOMEM. */
int compute_pod_status(const PodStatusInput *input, const PodStatus *previous,
                       const PodStatus **ret);
