/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A byte stream that is read once, and is counted, hashed and limited while it is read. Its source
 * is a file, a member of an archive, the decompression of another stream, or an applied delta. */

#include "agent/image-helper/pull/digest.h"
#include "common/error.h"
#include "common/layer-view.h"

#include <archive.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct ByteStream ByteStream;

/* The bytes of an open file from 'offset' on. The descriptor is borrowed. */
int byte_stream_new_file(int fd, uint64_t offset, ByteStream **ret);

/* The bytes of an open file or pipe from its current position on. The descriptor is borrowed. */
int byte_stream_new_pipe(int fd, ByteStream **ret);

/* A file of 'size' bytes that is hashed and may still be growing: at its current end, the stream
 * waits for the pipe 'wakeup_fd'; -1 if the file must be complete. Both are borrowed. */
int byte_stream_new_blob(int fd, uint64_t size, int wakeup_fd, ByteStream **ret);

/* The data of the archive's current entry. Takes over the archive and the stream that it reads
 * from. */
int byte_stream_new_entry_take(struct archive *archive, ByteStream *below, ByteStream **ret);

/* Whether a file starts with an unsupported compression: -ENOTSUP with the remedy. */
int compression_check(const void *start, size_t length, Error *reterr);

/* 'below', decompressed from gzip or zstd; the same bytes if it is neither. Takes ownership of
 * 'below', also on failure. */
int byte_stream_new_unpacked_take(ByteStream *below, ByteStream **ret, Error *reterr);

/* The tar that the delta 'below' creates from the files of 'base' (tar-patch.h); hashed, with its
 * own limits. Takes ownership of 'below', also on failure; the base is borrowed. */
int byte_stream_new_patched_take(ByteStream *below, const LayerView *base, ByteStream **ret,
                                 Error *reterr);

/* Opens a tar reader on the stream, which the caller continues to own and which must outlive the
 * reader. */
int byte_stream_open_tar(ByteStream *stream, struct archive **ret, Error *reterr);

/* -ENOMEM or -EIO if the reader's error is caused by the machine; otherwise -EBADMSG. */
int archive_reader_error(struct archive *archive);

/* Limits the stream to 'length_max' bytes and, after the first GiB, to RATIO_MAX times the
 * compressed size. */
void byte_stream_limit(ByteStream *stream, uint64_t length_max);

/* Reads the next bytes, valid until the next call; 0 at the end. -errno with a message. */
ssize_t byte_stream_read(ByteStream *stream, const void **ret_data, Error *reterr);

/* Reads the rest, so that the digests cover the whole stream. 0 or -errno. */
int byte_stream_drain(ByteStream *stream, Error *reterr);

/* Writes the rest into the file. 0, or -errno with a message. */
int byte_stream_copy(ByteStream *stream, int fd, Error *reterr);

/* Whether the end has been reached. */
bool byte_stream_is_over(const ByteStream *stream);

/* The number of bytes read; at the end, and only once, also their digest. */
uint64_t byte_stream_length(const ByteStream *stream);
void byte_stream_digest(ByteStream *stream, char ret[DIGEST_SIZE]);

/* The underlying stream that this one decompresses, or applies as a delta. */
ByteStream *byte_stream_packed(ByteStream *stream);

ByteStream *byte_stream_free(ByteStream *stream);
DEFINE_CLEANUP(ByteStream *, byte_stream_free)

static inline void archive_read_freep(struct archive **archive) {
        if (*archive)
                (void) archive_read_free(*archive);
}
