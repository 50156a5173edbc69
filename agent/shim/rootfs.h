/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The root file system of a container, before the runtime gets it. */

#include "common/error.h"

/* Refuses an image in which /dev, /proc or /sys is a symbolic link. The runtime mounts there and
 * makes links and devices by path while the node's files are still its root, so that some versions
 * of runc follow such a link to the node's files. 0, -ELOOP with the path, or another -errno. */
int rootfs_check(const char *rootfs, Error *reterr);
