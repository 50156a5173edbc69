/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Disk usage of a container's directory: bytes and inodes. */

#include <stdint.h>

/* Bytes on disk of 'path' and everything below it on the same file system; 0 if it does not exist.
 * A file with several names counts once, if all of them are below. Follows no link, also when files
 * are moved during the walk. Anything nested deeper than 500 directories counts as more than any
 * limit: UINT64_MAX. */
uint64_t disk_usage(const char *path);

/* The number of inodes; each name of a file counts. */
uint64_t inode_usage(const char *path);
