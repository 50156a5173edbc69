/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The config.json edits for a container's CDI devices (Container Device Interface): env, device
 * nodes and their cgroup rules, mounts, hooks, groups, resctrl. Only computes. */

#include "agent/bundle/runtime-spec-input.h"

#include <jansson.h>

/* -EPERM with a message: the pod is an API server's and names devices by annotation, and this node
 * gives none to such pods. Its users may be kept from choosing devices of the node. 0: it may. */
int pod_check_cdi(const BundleConfig *config, const Pod *pod, Error *reterr);

/* Applies the edits of all devices that the container names, or none of them. 0;
 * -BUNDLE_DEVICE_MISSING with containerd's message if a device is unknown or absent; another
 * -errno. */
int cdi_edit_runtime_spec(const RuntimeSpecInput *input, json_t *document, Error *reterr);

/* The fstab lines with which the shim binds the mounts of CDI devices, ID-mapped for the pod's
 * users; "" for a pod without its own user namespace. */
int cdi_mounts_fstab(const RuntimeSpecInput *input, char **ret, Error *reterr);
