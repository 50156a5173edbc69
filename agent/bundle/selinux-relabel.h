/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* SELinux: which files are relabelled before a container starts, so that it can access them. Like
 * in the kubelet, these are the pod's own volumes and the files that the engine creates for it,
 * never files of the node. */

#include "agent/bundle/runtime-spec-input.h"

/* The fstab lines with which the shim relabels them; "" for a container without labels. 0 or
 * -ENOMEM. */
int selinux_relabel_fstab(const RuntimeSpecInput *input, char **ret);
