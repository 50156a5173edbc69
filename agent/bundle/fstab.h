/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The mounts that the shim makes, in the format that getmntent(3) reads. Pure functions: text out.
 */

#include "agent/bundle/bundle.h"

#include <stdio.h>

/* The pod's: /dev/shm, hostPath volumes (checked by the shim), emptyDirs in memory. NULL: no
 * memory. */
char *pod_fstab(const BundleConfig *config, const Pod *pod);

/* The container's: its root file system, the image's layers below a writable one. NULL: no memory.
 */
char *container_fstab(const Image *image, const char *bundle_dir, const char *state_dir);

/* A line of the container's: a path beneath a volume's root, which the shim binds to the target. */
void fstab_put_beneath(FILE *out, const char *root, const char *path, const char *target,
                       const char *volume);
