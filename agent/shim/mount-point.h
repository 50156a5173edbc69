/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Mount points in volumes that are read-only for containers: the runtime cannot make them. */

#include "common/error.h"

/* Makes what 'source' can be mounted on at 'target', which is below the volume 'root': a directory,
 * or an empty file if the source is not a directory. What exists stays; no link is followed, except
 * that the target itself may be a key of the volume. 0 or -errno. */
int mount_point_make(const char *source, const char *target, const char *root, Error *reterr);
