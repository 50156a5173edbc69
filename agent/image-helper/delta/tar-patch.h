/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Applies a delta between tars in the format of tar-diff (github.com/containers/tar-diff,
 * file-format.md); its media type is application/vnd.tar-diff. The format:
 *
 *     the eight bytes "tardf1\n\0", followed by a zstd stream of operations:
 *
 *     operation: 1 byte
 *     size:      an unsigned number of 64 bits as a varint of protocol buffers
 *     data:      'size' bytes, for all but Copy and Seek
 *
 *     0 Data     emits its data
 *     1 Open     its data is the relative path of a file in the old tars; it becomes the source, to
 *                be read from its start
 *     2 Copy     emits 'size' bytes of the source, and advances in it
 *     3 AddData  reads 'size' bytes of the source, adds them bytewise to its data, modulo 256,
 * emits the sums, and advances in the source 4 Seek     the source is read from the position 'size'
 * on
 *
 * The output is the new tar, bit for bit: headers and padding are Data. Only the contents of
 * regular files are sources; several old tars are represented by the directory into which they were
 * unpacked on top of one another. Older versions of tar-diff ignore whiteouts, newer ones apply
 * them; so a file that a layer hides is a source if no visible file has its path. A hard link
 * stands for the file that it links to.
 *
 * The delta is untrusted: paths are only looked up in the layers' directories, without following
 * links on the host; numbers, paths and the output have limits. Only the DiffID of the output shows
 * whether the delta is correct. */

#include "common/error.h"
#include "common/layer-view.h"

#include <sys/types.h>

#define TAR_PATCH_HEADER     "tardf1\n\0"
#define TAR_PATCH_OUTPUT_MAX (UINT64_C(32) << 30)
#define MEDIA_TYPE_TAR_DIFF  "application/vnd.tar-diff"

enum {
        TAR_PATCH_HEADER_SIZE = 8,
        TAR_PATCH_OPERATIONS_MAX = 16 * 1024 * 1024
};

typedef enum TarPatchOperation {
        TAR_PATCH_DATA,
        TAR_PATCH_OPEN,
        TAR_PATCH_COPY,
        TAR_PATCH_ADD_DATA,
        TAR_PATCH_SEEK,
} TarPatchOperation;

typedef struct TarPatch TarPatch;

/* Returns the next bytes of the operations, decompressed, valid until the next call; 0 at the end;
 * -errno with a message. */
typedef ssize_t (*tar_patch_source_t)(void *userdata, const void **ret, Error *reterr);

/* 'base' contains the old image's layers, which are complete; borrowed. NULL: out of memory. */
TarPatch *tar_patch_new(const LayerView *base, tar_patch_source_t source, void *userdata);

/* Fills 'block' with bytes of the new tar; fewer only at its end, 0 after it. -errno with a
 * message: -ENOENT if the base does not have a file, -EBADMSG if the delta is damaged, -E2BIG or
 * -EFBIG if it exceeds a limit. */
ssize_t tar_patch_read(TarPatch *patch, void *block, size_t size, Error *reterr);

TarPatch *tar_patch_free(TarPatch *patch);
DEFINE_CLEANUP(TarPatch *, tar_patch_free)
