/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Checks a tar before it becomes the layer of an image. */

#include "common/error.h"

/* The tar of a root file system, from the current position of the file to its end: the names, types
 * and sizes of its entries are such that it can be unpacked, nothing of it is missing, and it is
 * not an image archive. 0, or -errno with a message. */
int rootfs_tar_check(int fd, Error *reterr);
