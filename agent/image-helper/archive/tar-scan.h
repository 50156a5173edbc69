/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The positions of the files in the bytes of a tar, which libarchive does not report; for creating
 * deltas. Pure. An entry of an unknown kind ends the list, and then fewer files are compared. */

#include "common/macros.h"

#include <stddef.h>
#include <stdint.h>

typedef enum TarScanKind {
        TAR_SCAN_FILE,
        TAR_SCAN_LINK, /* a hard link */
        TAR_SCAN_DIRECTORY,
        TAR_SCAN_OTHER,
} TarScanKind;

typedef struct ScannedEntry {
        TarScanKind kind;
        char *name;      /* clean (tar-name.h) */
        char *link;      /* for a hard link: the clean name of its target; else NULL */
        uint64_t offset; /* offset of the file's bytes */
        uint64_t size;
} ScannedEntry;

typedef struct TarScan {
        ScannedEntry *entries; /* in archive order */
        size_t n;
} TarScan;

/* 0 or -ENOMEM; must be freed in any case. */
int tar_scan(const uint8_t *data, uint64_t length, TarScan *ret);
void tar_scan_done(TarScan *scan);
