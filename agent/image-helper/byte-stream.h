/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bytes that pass by once: counted, hashed, held to a limit. A stream is the data of one member of
 * an archive, or what another stream unpacks to; libarchive reads all of them. */

#include "agent/image-helper/digest.h"
#include "common/error.h"

#include <archive.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct ByteStream ByteStream;

/* Bytes of an open file from 'offset' on. The descriptor is borrowed. */
int byte_stream_new_file(int fd, uint64_t offset, ByteStream **ret);

/* A file of 'size' bytes that is hashed, and may still be arriving: where it has no more, the pipe
 * 'doorbell' is waited on; -1 where all of it must be there. Both are borrowed. */
int byte_stream_new_blob(int fd, uint64_t size, int wakeup_fd, ByteStream **ret);

/* The data of the archive's current entry. Takes the archive over, and the stream it reads from. */
int byte_stream_new_entry_take(struct archive *archive, ByteStream *below, ByteStream **ret);

/* What 'below' becomes without gzip or zstd; the same bytes where it has neither. Takes 'below'
 * over, also when it fails. */
int byte_stream_new_unpacked_take(ByteStream *below, ByteStream **ret, Error *reterr);

/* Opens a tar reader on the stream, which stays the caller's and must outlive it. */
int byte_stream_open_tar(ByteStream *stream, struct archive **ret, Error *reterr);

/* No more than 'length_max' bytes, and beyond the first GiB no more than RATIO_MAX times what they
 * are packed in. */
void byte_stream_limit(ByteStream *stream, uint64_t length_max);

/* The next bytes, valid until the next call; 0 at the end. -errno with the sentence. */
ssize_t byte_stream_read(ByteStream *stream, const void **ret_data, Error *reterr);

/* Reads what is left, so that the digests are those of the whole. 0 or -errno. */
int byte_stream_drain(ByteStream *stream, Error *reterr);

/* Whether its end was read. */
bool byte_stream_is_over(const ByteStream *stream);

/* How many bytes have passed, and, at the end, once, their digest. */
uint64_t byte_stream_length(const ByteStream *stream);
void byte_stream_digest(ByteStream *stream, char ret[DIGEST_SIZE]);

/* The stream that this one unpacks, or NULL. */
ByteStream *byte_stream_below(ByteStream *stream);

ByteStream *byte_stream_free(ByteStream *stream);
DEFINE_CLEANUP(ByteStream *, byte_stream_free)

static inline void archive_read_freep(struct archive **archive) {
        if (*archive)
                (void) archive_read_free(*archive);
}
