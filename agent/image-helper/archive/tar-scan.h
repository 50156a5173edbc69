/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The positions of the files in the bytes of a tar, which libarchive does not report: for making
 * deltas. Pure. An entry that it does not understand ends the list, and then fewer files are
 * compared. */

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
        char *link;      /* of a hard link: the clean name of its target; else NULL */
        uint64_t offset; /* of a file's bytes */
        uint64_t size;
} ScannedEntry;

typedef struct TarScan {
        ScannedEntry *entries; /* in their order */
        size_t n;
} TarScan;

/* 0 or -ENOMEM; to be freed in any case. */
int tar_scan(const uint8_t *data, uint64_t length, TarScan *ret);
void tar_scan_done(TarScan *scan);
