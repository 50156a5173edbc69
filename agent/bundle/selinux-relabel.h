/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* SELinux: determines the files that are relabelled before a container starts, so that it can
 * access them. As in the kubelet, these are the pod's own volumes and the files that the engine
 * creates for it, never files of the node. */

#include "agent/bundle/runtime-spec-input.h"

/* The fstab lines with which the shim relabels these files; "" for a container without labels. 0 or
 * -ENOMEM. */
int selinux_relabel_fstab(const RuntimeSpecInput *input, char **ret);
