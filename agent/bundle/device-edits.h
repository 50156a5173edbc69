/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The edits of a container's devices (model/device.h) in its config.json: variables, mounts, device
 * nodes with their cgroup rules, annotations. */

#include "agent/bundle/runtime-spec-input.h"
#include "agent/bundle/variable-set.h"

#include <jansson.h>

/* Adds the variables that the container does not set itself; they replace those of its image. 0,
 * -ENOMEM, -E2BIG. */
int device_edit_environment(const BundleConfig *config, const VariableSet *variables,
                            VariableSet *environment);

/* To be called before the mounts of volumes are added. Their sources are those of
 * device_mounts_fstab(). 0 or -ENOMEM. */
int device_edit_mounts(const RuntimeSpecInput *input, json_t *mounts);

/* Lines for the shim: it binds the path of each mount into the bundle, and makes a directory of a
 * path that does not exist, as containerd and CRI-O do. The caller frees the text. 0 or -ENOMEM. */
int device_mounts_fstab(const RuntimeSpecInput *input, char **ret);

/* The devices that may come and go, as mainstay-shim reads them: a line
 * "<type> <major>:<minor> <access> <mode> <uid>:<gid> <path on the node> <path in the container>"
 * for each that is there; modes are octal. The caller frees the list with strv_free(). 0 or
 * -ENOMEM. */
int device_edits_print_live(const DeviceEdits *edits, char ***ret);

/* The device nodes and annotations. 0; -errno with a message where a device is not there. */
int device_edit_runtime_spec(const RuntimeSpecInput *input, json_t *document, Error *reterr);
