/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Unpacks the tar of one layer into a directory. */

#include "agent/image-helper/byte-stream.h"
#include "agent/image-helper/layer-view.h"

#include <stdatomic.h>

/* What the layers of one image may still take, all of them together, though each is unpacked by a
 * process of its own: so it lies in memory that they share. */
typedef struct UnpackBudget {
        _Atomic uint64_t bytes; /* of files, holes counted */
        _Atomic uint64_t entries;
} UnpackBudget;

enum {
        IMAGE_ENTRIES_MAX = 2000000
};

#define IMAGE_BYTES_MAX (UINT64_C(128) << 30)

/* A whole one; or NULL. */
UnpackBudget *unpack_budget_new(void);
UnpackBudget *unpack_budget_free(UnpackBudget *allowance);
DEFINE_CLEANUP(UnpackBudget *, unpack_budget_free)

/* 'tar' is the unpacked stream, 'fd' an empty directory, 'below' the layers under it, topmost
 * first. Reads the stream to its end. Whether the bytes are those that were promised is for the
 * caller to check afterwards: until then the directory is worth nothing. What it takes is taken off
 * the allowance. 0, or -errno with the sentence. */
int unpack_layer_tar(ByteStream *tar, int fd, const LayerView *below, UnpackBudget *allowance,
                     Error *reterr);
