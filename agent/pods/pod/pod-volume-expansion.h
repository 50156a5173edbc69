/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The expansion of the volumes of a pod: once they are mounted, and while the pod runs. */

#include "agent/model/csi-volume.h"
#include "agent/pods/pod/pod-instance.h"

/* A volume was mounted for a pod that is about to start. 0: it has the requested size, or keeps its
 * current one; -EAGAIN with a message: the expansion is in progress; or -EIO with the kubelet's
 * message. */
int pod_expand_new_volume(const PodInstance *pod, CsiVolume *volume, Error *reterr);

/* Does everything that is due for a volume of a running pod. Failures are reported as events. */
void pod_expand_running_volume(const PodInstance *pod, CsiVolume *volume);
