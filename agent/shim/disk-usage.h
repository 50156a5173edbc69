/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Disk usage of a container's directory: bytes and inodes. */

#include <stdbool.h>
#include <stdint.h>

typedef struct StorageTaken {
        uint64_t bytes;  /* on disk; a file with several names counts once, if all are below */
        uint64_t inodes; /* each name of a file counts */
        bool is_cut;     /* the time was over: there is at least this much */
} StorageTaken;

/* The usage of 'path' and everything below it on the same file system; zero if it does not exist.
 * Follows no link, also when files are moved during the walk. Anything nested deeper than 500
 * directories counts as more than any limit: UINT64_MAX. The walk ends at boot time 'until_usec'.
 */
StorageTaken storage_taken(const char *path, uint64_t until_usec);
