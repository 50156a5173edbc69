/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pods that a pod waits for before it starts: the pods in its annotation mainstay.dev/after
 * (see model/pod-order.h) must be Ready, or must have succeeded. This is checked before each start
 * of the sandbox; a running pod is not affected. */

#include "agent/pods/pod/pod-instance.h"

typedef struct AwaitedPods {
        char *message; /* for the status; NULL: it does not wait */
} AwaitedPods;

/* Whether the pod may start; if not, reports the reason in 'awaited', and once in the log and as an
 * event. */
bool awaited_pods_check(AwaitedPods *awaited, const PodInstance *pod);
void awaited_pods_done(AwaitedPods *awaited, const PodInstance *pod);
