/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Mount points in volumes that are read-only for containers: the runtime cannot make them. */

#include "common/error.h"

/* Creates a mount point for 'source' at 'target', which is below the volume 'root': a directory, or
 * an empty file if the source is not a directory. Existing files stay; no link is followed, except
 * that the target itself may be a key of the volume. 0 or -errno. */
int mount_point_make(const char *source, const char *target, const char *root, Error *reterr);
