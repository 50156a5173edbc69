/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The volumes of a pod that CSI drivers mount: before its sandbox starts, and while it runs. */

#include "agent/pods/pod/pod-instance.h"

/* Has all of them mounted. 0; -EAGAIN with a message: one is awaited; or -errno with the kubelet's
 * message. */
int pod_mount_csi_volumes(const PodInstance *pod, Error *reterr);

/* A volume of the pod is that of a CSI driver, or of a claim, which may be bound to one. */
bool pod_has_csi_volume(const Pod *pod);

/* Does what is due for the volumes of a pod that runs. Failures are events. */
void pod_check_running_csi_volumes(const PodInstance *pod);

/* The kubelet's reason of an event about a volume, by its message. */
const char *pod_volume_event_reason(const char *message);
