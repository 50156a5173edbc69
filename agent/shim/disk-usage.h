/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Disk usage of a container's directory: bytes and inodes. */

#include <stdbool.h>
#include <stdint.h>

typedef struct StorageTaken {
        uint64_t bytes;  /* on disk; a file with several names counts once, if all names are below
                          * the directory */
        uint64_t inodes; /* each name of a file counts */
        bool is_cut;     /* the time limit was reached; the real usage is at least this */
} StorageTaken;

/* The usage of 'path' and everything below it on the same file system; zero if it does not exist.
 * Follows no links, even if files are moved during the walk. If directories are nested more than
 * 500 levels deep, the usage is UINT64_MAX, which exceeds any limit. The walk ends at boot time
 * 'until_usec'.
 */
StorageTaken storage_taken(const char *path, uint64_t until_usec);
