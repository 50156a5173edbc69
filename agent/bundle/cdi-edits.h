/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The config.json edits for a container's CDI devices (Container Device Interface): env, device
 * nodes and their cgroup rules, mounts, hooks, groups, resctrl. Has no side effects. */

#include "agent/bundle/runtime-spec-input.h"

#include <jansson.h>

/* Whether the pod may have the devices that its annotations name. 0; -EPERM with a message: the pod
 * comes from an API server, and this node is configured not to allow users of an API server to
 * choose its devices. */
int pod_check_cdi(const BundleConfig *config, const Pod *pod, Error *reterr);

/* Applies the edits of all devices that the container names, or none of them. 0;
 * -BUNDLE_DEVICE_MISSING with containerd's message if a device is unknown or absent; another
 * -errno. */
int cdi_edit_runtime_spec(const RuntimeSpecInput *input, json_t *document, Error *reterr);

/* The fstab lines with which the shim binds the mounts of CDI devices, ID-mapped for the pod's
 * users; "" for a pod without its own user namespace. */
int cdi_mounts_fstab(const RuntimeSpecInput *input, char **ret, Error *reterr);
