/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Checks a tar before it becomes the layer of an image. */

#include "common/error.h"

/* Checks the tar of a root file system, from the current position of the file to its end: whether
 * it is complete, is not an image archive, and has only entries whose names, types and sizes can be
 * unpacked. 0, or -errno with a message. */
int rootfs_tar_check(int fd, Error *reterr);
