/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The configuration of an image that is created from a root file system, given on a command line.
 * Pure. */

#include "agent/image-helper/pull/document.h"

/* Applies one change to 'config', the member "config" of an image configuration. A change is a
 * Dockerfile instruction as accepted by podman-import(1) ("CMD [\"/bin/sh\"]", "ENV=A=b"; the names
 * of the image specification, such as "WorkingDir", are also accepted), or a JSON object with
 * members of the configuration. 0, -EINVAL with a message, or -ENOMEM. */
int rootfs_config_apply(json_t *config, const char *change, Error *reterr);
