/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The config.json edits for a container's devices (model/device.h): variables, mounts, device nodes
 * with their cgroup rules, annotations. */

#include "agent/bundle/runtime-spec-input.h"
#include "agent/bundle/variable-set.h"

#include <jansson.h>

/* Adds the variables that the container does not set itself; they replace those of its image. 0,
 * -ENOMEM, -E2BIG. */
int device_edit_environment(const BundleConfig *config, const VariableSet *variables,
                            VariableSet *environment);

/* To be called before the mounts of volumes are added. The sources of the mounts are prepared by
 * device_mounts_fstab(). 0 or -ENOMEM. */
int device_edit_mounts(const RuntimeSpecInput *input, json_t *mounts);

/* Lines for the shim, which binds the source of each mount into the bundle, and creates a directory
 * if it does not exist, like containerd and CRI-O. The caller frees the text. 0 or -ENOMEM. */
int device_mounts_fstab(const RuntimeSpecInput *input, char **ret);

/* The hot-plug devices in the format that mainstay-shim reads: a line "<type> <major>:<minor>
 * <access> <mode> <uid>:<gid> <path on the node> <path in the container>" for each device that is
 * present; modes are octal. The caller frees the list with strv_free(). 0 or -ENOMEM. */
int device_edits_print_live(const DeviceEdits *edits, char ***ret);

/* Adds the device nodes and annotations. 0; -errno with a message if a device is absent. */
int device_edit_runtime_spec(const RuntimeSpecInput *input, json_t *document, Error *reterr);
