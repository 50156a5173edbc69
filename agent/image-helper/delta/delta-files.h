/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The files of an image that a delta may copy from: those that are visible when its layers are
 * unpacked on top of one another. */

#include "agent/image-helper/archive/tar-scan.h"
#include "common/hash.h"

typedef struct DeltaFile {
        const char *name; /* borrowed from the layer's entries */
        const char *base; /* last component of the name */
        const uint8_t *data;
        uint64_t size;
        char hash[SHA256_HEX_SIZE];
} DeltaFile;

/* The bytes of one layer's tar, in memory, and its entries. */
typedef struct DeltaLayer {
        const uint8_t *data;
        uint64_t length;
        TarScan scan;
} DeltaLayer;

typedef struct DeltaFiles {
        DeltaFile *by_hash; /* sorted by hash and name; owned */
        DeltaFile **by_name;
        DeltaFile **by_base;
        size_t n;
} DeltaFiles;

/* Collects the files. The layers, lowest first, must outlive the result. 0 or -ENOMEM; must be
 * freed in any case. */
int delta_files_collect(const DeltaLayer *layers, size_t n, DeltaFiles *ret);
void delta_files_done(DeltaFiles *files);

/* The file with that content; NULL: none. */
const DeltaFile *delta_files_find_equal(const DeltaFiles *files, const char *hash, uint64_t size);

/* The file with that name; or, if it was moved, one with the same last component and a similar
 * size. */
const DeltaFile *delta_files_find_similar(const DeltaFiles *files, const char *name, uint64_t size);
