/* SPDX-License-Identifier: Apache-2.0 */

/* The pod workers of pods/ as the DaemonSet controller sees them. */

#include "agent/daemonset/pod-access.h"

static int for_each_managed_pod(void *pods,
                                int (*each)(const Pod *pod, const PodStatus *status, void *context),
                                void *context) {
        return pod_manager_for_each_pod(pods, each, context);
}

static const PodStatus *get_managed_pod_status(void *pods, const char *uid) {
        return pod_manager_pod_status(pods, uid);
}

static int new_managed_pod_preflight(void *pods, Pod *pod, void (*on_change)(void *userdata),
                                     void *userdata, Preflight **ret) {
        return pod_manager_new_preflight(pods, pod, on_change, userdata, ret);
}

static bool is_pod_manager_shutting_down(void *pods) {
        return pod_manager_is_shutting_down(pods);
}

const PodAccess pod_manager_access = {
        .for_each = for_each_managed_pod,
        .get_status = get_managed_pod_status,
        .new_preflight = new_managed_pod_preflight,
        .is_shutting_down = is_pod_manager_shutting_down,
};
