/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a pod waits for before it starts: the pods that its annotation mainstay.dev/after names (see
 * model/pod-order.h) are to be Ready, or to have succeeded. It applies to each start of the
 * sandbox; a pod that runs is left alone. */

#include "agent/pods/pod/pod-instance.h"

typedef struct AwaitedPods {
        char *message; /* for the status; NULL: it waits for none */
} AwaitedPods;

/* Whether the pod may start; if not, says why in 'awaited', and once in the log and as an event. */
bool awaited_pods_check(AwaitedPods *awaited, const PodInstance *pod);
void awaited_pods_done(AwaitedPods *awaited, const PodInstance *pod);
