/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How much of a disk a directory of a container's takes. */

#include <stdint.h>

/* Bytes on the disk of all below 'path', itself too, on its own file system; 0 where it is not
 * there. A file with several names counts once, as long as all of them are below. Follows no link
 * and is led nowhere by who moves things meanwhile. What is nested deeper than 500 directories is
 * there to hide, and counts as more than any limit: UINT64_MAX. */
uint64_t disk_usage(const char *path);

/* The same in files and directories, each by its name. */
uint64_t inode_usage(const char *path);
