/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Checks the root file system of a container before the runtime uses it. */

#include "common/error.h"

/* Refuses an image in which /dev, /proc or /sys is a symbolic link. The runtime mounts there and
 * creates links and devices by path while its root is still the node's, so some versions of runc
 * follow such a link to the node's files. 0, -ELOOP with the path, or another -errno. */
int rootfs_check(const char *rootfs, Error *reterr);
