/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes a delta in the format of tar-patch.h. */

#include "agent/image-helper/pull/digest.h"
#include "common/error.h"

#include <stdint.h>

typedef struct TarDiffWriter TarDiffWriter;

/* Writes to 'fd', an empty file, which is borrowed. */
int tar_diff_writer_new(int fd, TarDiffWriter **ret, Error *reterr);

/* Operations. The bytes of 'data' must remain valid until the end: data that is contiguous in
 * memory becomes one operation. All functions return 0 or -errno with a message. */
int tar_diff_writer_data(TarDiffWriter *writer, const uint8_t *data, uint64_t size, Error *reterr);
int tar_diff_writer_copy(TarDiffWriter *writer, const char *path, uint64_t position, uint64_t size,
                         Error *reterr);

/* Writes the difference between the source's bytes 'from', at 'position', and 'to'. */
int tar_diff_writer_add(TarDiffWriter *writer, const char *path, uint64_t position,
                        const uint8_t *from, const uint8_t *to, uint64_t size, Error *reterr);

/* Writes pending data. */
int tar_diff_writer_finish(TarDiffWriter *writer, Error *reterr);

/* The digest and the size of the output; to be called once, after the end. */
void tar_diff_writer_result(TarDiffWriter *writer, char ret[DIGEST_SIZE], uint64_t *ret_size);

TarDiffWriter *tar_diff_writer_free(TarDiffWriter *writer);
DEFINE_CLEANUP(TarDiffWriter *, tar_diff_writer_free)
