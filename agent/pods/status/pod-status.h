/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The status of a pod (v1.PodStatus): statuses of containers, phase, conditions, addresses. */

#include "agent/pods/container/pod-containers.h"
#include "agent/pods/pod/pod-admission.h"
#include "agent/pods/pod/pod-failure.h"

#include <netinet/in.h>

/* What the status is computed from. */
typedef struct PodStatusInput {
        const PodInstance *pod;
        const PodContainers *containers;
        const PodFailure *failure;
        const PodAdmission *admission;
        const char *awaited_pods; /* what it is to start after; these may be NULL */
        const char *last_error;   /* why the sandbox is not ready */
        const char *edit_error;   /* why the edited pod cannot start */
        const char *resize_error; /* why the cgroups are not as the spec says */
        uint64_t deletion_time;   /* 0: it is not being terminated */
        bool is_syncing;          /* a restarted agent does not know all yet … */
        bool is_provisional;      /* … so that conditions may be wrong */
        bool has_sandbox;
        bool is_sandbox_ready;
} PodStatusInput;

/* What was reported last: conditions, for their transition times, and addresses, which a pod that
 * has terminated keeps without a sandbox. Zeroed at first. */
typedef struct ReportedPodStatus {
        struct {
                bool is_true;
                uint64_t last_transition; /* 0: never reported */
        } types[N_POD_CONDITIONS];
        char addresses[2][INET6_ADDRSTRLEN]; /* "": none */
} ReportedPodStatus;

/* 0 with a status that the caller ends with pod_status_done(), or -ENOMEM. */
int compute_pod_status(const PodStatusInput *input, ReportedPodStatus *reported, PodStatus *ret);
