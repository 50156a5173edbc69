/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes the mounts of an fstab in the shim's mount namespace, and removes them. Blocks like
 * mount(2), so it is for tasks, not for the loop. */

#include "common/error.h"

/* Makes the mounts in order. Targets are below 'root'; missing ones are created, and no link is
 * followed. If a mount fails, the earlier ones are undone. A missing file counts as an empty list.
 * 0 or -errno. */
int mounts_apply(const char *fstab_path, const char *root, int network_fd, Error *reterr);

/* Lazily unmounts everything that is mounted on 'root' and below. Mounts with peers elsewhere (a
 * volume's own mounts, shared with the host) stay there. 0 or the first -errno. */
int mounts_undo(const char *root);

/* 0 if mounts at 'path' in this namespace stay in it; otherwise -EINVAL and the reason. */
int mounts_check_private(const char *path, Error *reterr);
