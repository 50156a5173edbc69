/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Unpacks the tar of one layer into a directory. */

#include "agent/image-helper/archive/byte-stream.h"
#include "common/layer-view.h"

#include <stdatomic.h>

/* The space that the layers of one image may still use in total. Each layer is unpacked by a
 * separate process, so this is in shared memory. */
typedef struct UnpackBudget {
        _Atomic uint64_t bytes; /* size of files, including holes */
        _Atomic uint64_t entries;
        _Atomic int64_t lookups; /* see LayerView */
} UnpackBudget;

enum {
        IMAGE_ENTRIES_MAX = 2000000,
        IMAGE_LOOKUPS_MAX = 100000000 /* takes a few minutes of CPU time; a typical image needs
                                       * thousands */
};

#define IMAGE_BYTES_MAX (UINT64_C(128) << 30)

/* A full budget; NULL: out of memory. */
UnpackBudget *unpack_budget_new(void);
UnpackBudget *unpack_budget_free(UnpackBudget *budget);
DEFINE_CLEANUP(UnpackBudget *, unpack_budget_free)

/* 'tar' is the decompressed stream, 'fd' an empty directory, 'below' the lower layers, topmost
 * first. Reads the stream to its end. The caller must check the digests afterwards: until then the
 * directory is unverified. The size is subtracted from the budget. 0, or -errno with a message.
 */
int unpack_layer_tar(ByteStream *tar, int fd, const LayerView *below, UnpackBudget *budget,
                     Error *reterr);
