/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes the mounts of an fstab in the shim's namespace, and removes them. Blocks as mount(2) does:
 * for tasks, not for the loop. */

#include "common/error.h"

/* Makes the mounts in order. Targets lie below 'root' and are made where they are missing, through
 * no link. When one fails, those before it are undone. A file that is not there is an empty one. 0
 * or -errno. */
int mounts_apply(const char *fstab_path, const char *root, Error *reterr);

/* Unmounts, lazily, all that is mounted on 'root' and below. What is mounted elsewhere too (a
 * volume's own mounts, shared with the host) stays there. 0 or the first -errno. */
int mounts_undo(const char *root);

/* 0 when what is mounted at 'path' in this namespace stays in it; else -EINVAL and why. */
int mounts_check_private(const char *path, Error *reterr);
