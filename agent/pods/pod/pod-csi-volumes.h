/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The volumes of a pod that CSI drivers mount: mounts them before its sandbox starts, and maintains
 * them while it runs. */

#include "agent/pods/pod/pod-instance.h"

/* Mounts all volumes of CSI drivers. 0; -EAGAIN with a message: one of them is still being mounted;
 * or -errno with the kubelet's message. */
int pod_mount_csi_volumes(const PodInstance *pod, Error *reterr);

/* Whether the pod has a volume of a CSI driver, or a claim, which may be bound to one. */
bool pod_has_csi_volume(const Pod *pod);

/* Does everything that is due for the volumes of a running pod. Failures are reported as events. */
void pod_check_running_csi_volumes(const PodInstance *pod);

/* The kubelet's reason for an event about a volume, chosen by the message of that event. */
const char *pod_volume_event_reason(const char *message);
