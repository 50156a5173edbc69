/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The volumes of a pod that CSI drivers mount, before its sandbox starts. */

#include "agent/pods/pod/pod-instance.h"

/* Has all of them mounted. 0; -EAGAIN with a message: one is awaited; or -errno with the kubelet's
 * message. */
int pod_mount_csi_volumes(const PodInstance *pod, Error *reterr);
