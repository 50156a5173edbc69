/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The edits of config.json for the CDI devices of a container (Container Device Interface): env,
 * device nodes and their cgroup rules, mounts, hooks, groups, resctrl. Computes only. */

#include "agent/bundle/runtime-spec-input.h"

#include <jansson.h>

/* Applies the edits of all devices that the container names, or none. 0; -BUNDLE_DEVICE_MISSING
 * with containerd's message, if a device is unknown or not there; another -errno. */
int cdi_edit_runtime_spec(const RuntimeSpecInput *input, json_t *document, Error *reterr);

/* The lines of fstab by which the shim binds what CDI devices mount, ID-mapped for the pod's users;
 * "" for a pod without its own user namespace. */
int cdi_mounts_fstab(const RuntimeSpecInput *input, char **ret, Error *reterr);
