/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* SELinux: what is given a label before a container begins, so that it may have it. As with the
 * kubelet these are the volumes that are the pod's own and the files that the engine makes for it,
 * never what is the node's. */

#include "agent/bundle/runtime-spec.h"

/* The lines of fstab by which the shim does it; "" for a container without labels. 0 or -ENOMEM. */
int selinux_relabel_fstab(const RuntimeSpecInput *input, char **ret);
