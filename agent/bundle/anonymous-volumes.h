/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The volumes that an image declares (VOLUME in a Dockerfile): a separate directory for each
 * attempt of a container, with a copy of the image's content at that path. The directories are
 * below the attempt's state directory, so that they count as its storage and are removed with it.
 * Has no side effects. */

#include "agent/bundle/runtime-spec-input.h"

/* The number of such volumes: 0 if the shim is too old to copy their content. */
size_t anonymous_volume_count(const RuntimeSpecInput *input);

/* <state directory of the attempt>/volumes, and the nth directory in it; NULL: out of memory. */
char *anonymous_volumes_dir(const RuntimeSpecInput *input);
char *anonymous_volume_path(const RuntimeSpecInput *input, size_t i);

/* Whether the runtime itself mounts something at that path, which an image cannot replace. */
bool is_runtime_mount(const char *path);

/* The fstab lines with which the shim fills them. 0 or -ENOMEM. */
int anonymous_volumes_fstab(const RuntimeSpecInput *input, char **ret);
