/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The functions of the pod workers that the DaemonSet controller needs. 'pod_manager_access' uses
 * pods/; the unit tests pass simulated pods to the controller. */

#include "agent/pods/manager/pod-manager.h"
#include "agent/pods/manager/successor-preflight.h"

typedef struct PodAccess {
        /* Visits each pod with its status. 0 or -ENOMEM. */
        int (*for_each)(void *pods,
                        int (*each)(const Pod *pod, const PodStatus *status, void *context),
                        void *context);

        /* -ENOENT if there is no such pod. */
        const PodStatus *(*get_status)(void *pods, const char *uid);

        int (*new_preflight)(void *pods, Pod *pod, void (*on_change)(void *userdata),
                             void *userdata, Preflight **ret);

        /* The machine is shutting down: pods are stopped, and start again at the next boot. */
        bool (*is_shutting_down)(void *pods);
} PodAccess;

extern const PodAccess pod_manager_access; /* 'pods' is a PodManager */
