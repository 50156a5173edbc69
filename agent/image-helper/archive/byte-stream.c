/* SPDX-License-Identifier: Apache-2.0 */

/* Only libarchive's format readers are used here: raw with gzip and zstd, and tar. A layer passes
 * through three of them, stacked: the outer tar provides the blob (its hash is the blob's digest),
 * the raw reader decompresses it (its hash is the DiffID), the tar reader provides the entries.
 * Each level keeps only one block in memory. gunzip.h replaces the raw reader for gzip, if it is
 * built in. */

#include "agent/image-helper/archive/byte-stream.h"

#include "agent/image-helper/archive/gunzip.h"
#include "agent/image-helper/delta/tar-patch.h"
#include "common/cleanup.h"
#include "common/file.h"

#include <archive_entry.h>

enum {
        BLOCK_SIZE = 128 * 1024,
        SNIFF_BYTES = 4,
        RATIO_MAX = 250
};

#define RATIO_FREE_BYTES (UINT64_C(1) << 30)

struct ByteStream {
        struct archive *archive; /* source of the data; NULL: 'fd' */
        bool is_raw;             /* the archive has no members, so its blocks are read directly */
        bool is_empty;           /* the archive has no data to decompress */
        ByteStream *below;
        Gunzip *gunzip;     /* decompresses 'below'; NULL: libarchive or nothing does */
        TarPatch *patch;    /* applies 'below', the operations of a delta, to its base */
        const char *header; /* 'below' starts with it, and the bytes after it are read; or NULL */
        size_t header_length;
        size_t n_unread; /* bytes of the block that were only peeked at */
        int fd;
        bool is_sequential; /* 'fd' may be a pipe: it is read from its current position */
        int wakeup_fd;
        uint64_t offset;
        uint64_t size; /* size of a file that is still growing; UINT64_MAX: it is complete */
        uint64_t length;
        uint64_t length_max;
        bool is_over;
        Sha256 *hash;
        Error error; /* error of the underlying stream, which libarchive's own message would hide */
        uint8_t block[BLOCK_SIZE];
};

static int byte_stream_new(ByteStream **ret) {
        ByteStream *stream = calloc(1, sizeof(*stream));

        if (!stream)
                return -ENOMEM;
        stream->fd = stream->wakeup_fd = -EBADF;
        stream->length_max = stream->size = UINT64_MAX;
        *ret = stream;
        return 0;
}

int byte_stream_new_file(int fd, uint64_t offset, ByteStream **ret) {
        int r = byte_stream_new(ret);

        if (r < 0)
                return r;
        (*ret)->fd = fd;
        (*ret)->offset = offset;
        return 0;
}

int byte_stream_new_pipe(int fd, ByteStream **ret) {
        int r = byte_stream_new_file(fd, 0, ret);

        if (r >= 0)
                (*ret)->is_sequential = true;
        return r;
}

int byte_stream_new_blob(int fd, uint64_t size, int wakeup_fd, ByteStream **ret) {
        cleanup_with(byte_stream_freep) ByteStream *stream = NULL;
        int r = byte_stream_new_file(fd, 0, &stream);

        if (r < 0)
                return r;
        stream->size = size;
        stream->wakeup_fd = wakeup_fd;
        stream->hash = sha256_new();
        if (!stream->hash)
                return -ENOMEM;
        *ret = TAKE_PTR(stream);
        return 0;
}

int byte_stream_new_entry_take(struct archive *archive, ByteStream *below, ByteStream **ret) {
        int r = byte_stream_new(ret);

        if (r >= 0) {
                (*ret)->hash = sha256_new();
                if ((*ret)->hash) {
                        (*ret)->archive = archive;
                        (*ret)->below = below;
                        return 0;
                }
                *ret = byte_stream_free(*ret);
        }
        (void) archive_read_free(archive);
        byte_stream_free(below);
        return -ENOMEM;
}

static la_ssize_t on_archive_read(struct archive *archive, void *userdata, const void **ret_data) {
        ByteStream *stream = userdata;
        ssize_t n = byte_stream_read(stream, ret_data, &stream->error);

        if (n < 0)
                archive_set_error(archive, (int) -n, "%s", error_message(&stream->error, (int) n));
        return n;
}

/* Only files can skip bytes; hashed data must be read. */
static la_int64_t on_archive_skip(struct archive *archive, void *userdata, la_int64_t request) {
        ByteStream *stream = userdata;

        if (stream->fd < 0 || stream->is_sequential || stream->hash || stream->n_unread > 0 ||
            request <= 0)
                return 0;
        stream->offset += (uint64_t) request;
        return request;
}

int archive_reader_error(struct archive *archive) {
        int code = archive_errno(archive);

        return code == ENOMEM || code == EIO ? -code : -EBADMSG;
}

static int archive_error_text(struct archive *archive, const ByteStream *below, Error *reterr) {
        const char *text = archive_error_string(archive);

        if (below && below->error.message)
                text = below->error.message;
        return error_setf(reterr, -archive_reader_error(archive), "%s",
                          text ? text : "cannot be read");
}

/* A filter for which libarchive would run a program is treated as unsupported. */
static int open_archive_reader(struct archive *archive, ByteStream *below, Error *reterr) {
        if (archive_read_set_callback_data(archive, below) != ARCHIVE_OK ||
            archive_read_set_read_callback(archive, on_archive_read) != ARCHIVE_OK ||
            archive_read_set_skip_callback(archive, on_archive_skip) != ARCHIVE_OK ||
            archive_read_open1(archive) != ARCHIVE_OK)
                return archive_error_text(archive, below, reterr);
        return 0;
}

int byte_stream_open_tar(ByteStream *stream, struct archive **ret, Error *reterr) {
        cleanup_with(archive_read_freep) struct archive *archive = archive_read_new();
        int r;

        if (!archive)
                return -ENOMEM;
        if (archive_read_support_format_tar(archive) != ARCHIVE_OK ||
            archive_read_support_format_empty(archive) != ARCHIVE_OK)
                return archive_error_text(archive, NULL, reterr);
        r = open_archive_reader(archive, stream, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(archive);
        return 0;
}

/* 1, or 0 if there is not a single byte. */
static int open_raw_reader(ByteStream *below, struct archive **ret, Error *reterr) {
        cleanup_with(archive_read_freep) struct archive *archive = archive_read_new();
        struct archive_entry *entry;
        int r;

        if (!archive)
                return -ENOMEM;
        if (archive_read_support_filter_gzip(archive) != ARCHIVE_OK ||
            archive_read_support_filter_zstd(archive) != ARCHIVE_OK ||
            archive_read_support_format_raw(archive) != ARCHIVE_OK ||
            archive_read_support_format_empty(archive) != ARCHIVE_OK)
                return error_setf(reterr, ENOTSUP, "this libarchive does not support gzip or zstd");
        r = open_archive_reader(archive, below, reterr);
        if (r < 0)
                return r;
        r = archive_read_next_header(archive, &entry);
        if (r != ARCHIVE_OK && r != ARCHIVE_EOF)
                return archive_error_text(archive, below, reterr);
        *ret = TAKE_PTR(archive);
        return r == ARCHIVE_OK;
}

int compression_check(const void *start, size_t length, Error *reterr) {
        /* After the digit of bzip2's block size, the start of its first block. */
        static const struct {
                const char *name;
                const char *bytes;
                size_t offset, n;
        } rows[] = {
                { "xz", "\xfd\x37zXZ", 0, 6 },
                { "bzip2", "1AY&SY", 4, 6 },
                { "lz4", "\x04\x22\x4d\x18", 0, 4 },
                { "lzip", "LZIP\x01", 0, 5 },
        };
        const char *bytes = start;

        for (size_t i = 0; i < N_ELEMENTS(rows); i++) {
                if (length < rows[i].offset + rows[i].n ||
                    memcmp(bytes + rows[i].offset, rows[i].bytes, rows[i].n) != 0 ||
                    (rows[i].offset > 0 && memcmp(bytes, "BZh", 3) != 0))
                        continue;
                return error_setf(reterr, ENOTSUP,
                                  "is compressed with %s, which is not supported: decompress it "
                                  "with '%s -d', or use gzip or zstd",
                                  rows[i].name, rows[i].name);
        }
        return 0;
}

/* The bytes are only peeked at. */
static int check_stream_compression(ByteStream *stream, Error *reterr) {
        const void *data;
        ssize_t n = byte_stream_read(stream, &data, reterr);

        if (n < 0)
                return (int) n;
        stream->n_unread = (size_t) n;
        return compression_check(data, (size_t) n, reterr);
}

#ifdef HAVE_ISAL

/* 1: it is gzip. 0: it is not. The bytes are only peeked at. */
static int is_gzip(ByteStream *stream, Error *reterr) {
        const void *data;
        ssize_t n = byte_stream_read(stream, &data, reterr);

        if (n < 0)
                return (int) n;
        stream->n_unread = (size_t) n;
        return n >= SNIFF_BYTES && memcmp(data, "\x1f\x8b", 2) == 0;
}

static ssize_t read_gzip_source(void *userdata, const void **ret, Error *reterr) {
        return byte_stream_read(userdata, ret, reterr);
}

/* 0: it is not gzip, and 'below' is still owned by the caller. 1, or -errno: taken. */
static int new_gunzip_take(ByteStream *below, ByteStream **ret, Error *reterr) {
        cleanup_with(byte_stream_freep) ByteStream *stream = NULL;
        int r;

        r = is_gzip(below, reterr);
        if (r == 0)
                return 0;
        if (r > 0)
                r = byte_stream_new(&stream);
        if (r < 0) {
                byte_stream_free(below);
                return r;
        }
        stream->below = below;
        stream->gunzip = gunzip_new(read_gzip_source, below);
        stream->hash = sha256_new();
        if (!stream->gunzip || !stream->hash)
                return -ENOMEM;
        *ret = TAKE_PTR(stream);
        return 1;
}

#endif

int byte_stream_new_unpacked_take(ByteStream *below, ByteStream **ret, Error *reterr) {
        struct archive *archive;
        bool is_empty;
        int r;

        r = check_stream_compression(below, reterr);
        if (r < 0) {
                byte_stream_free(below);
                return r;
        }
#ifdef HAVE_ISAL
        r = new_gunzip_take(below, ret, reterr);
        if (r != 0)
                return r < 0 ? r : 0;
#endif
        r = open_raw_reader(below, &archive, reterr);
        if (r < 0) {
                byte_stream_free(below);
                return r;
        }
        is_empty = r == 0;
        r = byte_stream_new_entry_take(archive, below, ret);
        if (r < 0)
                return r;
        (*ret)->is_raw = true;
        (*ret)->is_empty = is_empty;
        return 0;
}

/* ---- deltas ---- */

static int new_behind_header_take(ByteStream *below, const char *header, size_t length,
                                  ByteStream **ret) {
        int r = byte_stream_new(ret);

        if (r < 0) {
                byte_stream_free(below);
                return r;
        }
        (*ret)->below = below;
        (*ret)->header = header;
        (*ret)->header_length = length;
        return 0;
}

static ssize_t read_operations(void *userdata, const void **ret, Error *reterr) {
        return byte_stream_read(userdata, ret, reterr);
}

/* Stacks three streams: the bytes after the header, decompressed, and applied to the base. */
int byte_stream_new_patched_take(ByteStream *below, const LayerView *base, ByteStream **ret,
                                 Error *reterr) {
        cleanup_with(byte_stream_freep) ByteStream *operations = NULL, *stream = NULL;
        ByteStream *packed;
        int r;

        r = new_behind_header_take(below, TAR_PATCH_HEADER, TAR_PATCH_HEADER_SIZE, &packed);
        if (r < 0)
                return r;
        r = byte_stream_new_unpacked_take(packed, &operations, reterr);
        if (r < 0)
                return r;
        r = byte_stream_new(&stream);
        if (r < 0)
                return r;
        stream->patch = tar_patch_new(base, read_operations, operations);
        stream->hash = sha256_new();
        if (!stream->patch || !stream->hash)
                return -ENOMEM;
        stream->below = TAKE_PTR(operations);
        *ret = TAKE_PTR(stream);
        return 0;
}

/* The bytes are copied, because the next reader may only peek at them. */
static ssize_t read_behind_header(ByteStream *stream, Error *reterr) {
        for (;;) {
                const char *data;
                const void *block;
                ssize_t n = byte_stream_read(stream->below, &block, reterr);
                size_t skip, length;

                if (n < 0 || (n == 0 && stream->header_length == 0))
                        return n;
                data = block;
                length = (size_t) n;
                skip = MIN(length, stream->header_length);
                if (n == 0 || memcmp(data, stream->header, skip) != 0)
                        return error_setf(reterr, EBADMSG, "it is not a tar-diff");
                stream->header += skip;
                stream->header_length -= skip;
                if (length == skip)
                        continue;
                if (length - skip > sizeof(stream->block))
                        return -ENOBUFS;
                memcpy(stream->block, data + skip, length - skip);
                return (ssize_t) (length - skip);
        }
}

void byte_stream_limit(ByteStream *stream, uint64_t length_max) {
        stream->length_max = length_max;
}

static int check_limits(const ByteStream *stream, Error *reterr) {
        if (stream->length > stream->length_max)
                return error_setf(reterr, EFBIG, "is larger than %llu bytes",
                                  (unsigned long long) stream->length_max);
        /* A delta may copy any amount: its output has a separate limit. */
        if (stream->below && !stream->patch && stream->length > RATIO_FREE_BYTES &&
            stream->length / RATIO_MAX > stream->below->length)
                return error_setf(reterr, EFBIG, "decompresses to more than %d times its size",
                                  RATIO_MAX);
        return 0;
}

/* 1: more bytes may be available now. 0: the writer has closed the pipe. */
static int wait_for_file_bytes(const ByteStream *stream) {
        char wakeups[256];
        ssize_t n;

        if (stream->size == UINT64_MAX || stream->wakeup_fd < 0)
                return 0;
        do
                n = read(stream->wakeup_fd, wakeups, sizeof(wakeups));
        while (n < 0 && errno == EINTR);
        return n > 0;
}

static ssize_t read_file_bytes(const ByteStream *stream, uint8_t *to, size_t length) {
        return stream->is_sequential ? read(stream->fd, to, length)
                                     : pread(stream->fd, to, length, (off_t) stream->offset);
}

/* Reads the available bytes, but at least enough to detect the compression. */
static ssize_t read_arriving_file(ByteStream *stream, Error *reterr) {
        size_t want = (size_t) MIN(stream->size - stream->offset, (uint64_t) BLOCK_SIZE), have = 0;
        bool is_last = false;

        while (have < want) {
                ssize_t n = read_file_bytes(stream, stream->block + have, want - have);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return error_setf(reterr, errno, "cannot be read: %s", strerror(errno));
                stream->offset += (uint64_t) n;
                have += (size_t) n;
                if (have >= SNIFF_BYTES || (n == 0 && stream->size == UINT64_MAX))
                        return (ssize_t) have;
                if (n > 0)
                        continue;
                if (is_last)
                        return error_setf(reterr, EBADMSG, "is truncated");
                is_last = wait_for_file_bytes(stream) == 0;
        }
        return (ssize_t) have;
}

/* A member may have holes. */
static ssize_t read_archive_entry(ByteStream *stream, Error *reterr) {
        la_ssize_t n = archive_read_data(stream->archive, stream->block, sizeof(stream->block));

        if (n < 0)
                return archive_error_text(stream->archive, stream->below, reterr);
        return n;
}

static ssize_t read_raw_block(const ByteStream *stream, const void **ret_data, Error *reterr) {
        la_int64_t offset;
        size_t length = 0;
        int r;

        if (stream->is_empty)
                return 0;
        do
                r = archive_read_data_block(stream->archive, ret_data, &length, &offset);
        while (r == ARCHIVE_OK && length == 0);
        if (r == ARCHIVE_EOF)
                return 0;
        if (r != ARCHIVE_OK)
                return archive_error_text(stream->archive, stream->below, reterr);
        return (ssize_t) length;
}

static ssize_t read_stream_block(ByteStream *stream, const void **ret_data, Error *reterr) {
#ifdef HAVE_ISAL
        if (stream->gunzip)
                return gunzip_read(stream->gunzip, stream->block, BLOCK_SIZE, reterr);
#endif
        if (stream->patch)
                return tar_patch_read(stream->patch, stream->block, BLOCK_SIZE, reterr);
        if (stream->header)
                return read_behind_header(stream, reterr);
        if (stream->is_raw)
                return read_raw_block(stream, ret_data, reterr);
        return stream->archive ? read_archive_entry(stream, reterr)
                               : read_arriving_file(stream, reterr);
}

ssize_t byte_stream_read(ByteStream *stream, const void **ret_data, Error *reterr) {
        const void *data = stream->block;
        ssize_t n = (ssize_t) stream->n_unread;
        int r;

        if (n > 0) {
                stream->n_unread = 0;
                *ret_data = data;
                return n;
        }
        n = read_stream_block(stream, &data, reterr);
        if (n < 0)
                return n;
        stream->is_over = n == 0;
        stream->length += (uint64_t) n;
        r = check_limits(stream, reterr);
        if (r < 0)
                return r;
        if (stream->hash)
                sha256_update(stream->hash, data, (size_t) n);
        *ret_data = data;
        return n;
}

int byte_stream_drain(ByteStream *stream, Error *reterr) {
        const void *data;
        ssize_t n;

        do
                n = byte_stream_read(stream, &data, reterr);
        while (n > 0);
        return (int) n;
}

int byte_stream_copy(ByteStream *stream, int fd, Error *reterr) {
        for (;;) {
                const void *data;
                ssize_t n = byte_stream_read(stream, &data, reterr);
                int r;

                if (n <= 0)
                        return (int) n;
                r = write_all(fd, data, (size_t) n);
                if (r < 0)
                        return error_setf(reterr, -r, "cannot be decompressed: %s", strerror(-r));
        }
}

bool byte_stream_is_over(const ByteStream *stream) {
        return stream->is_over;
}

uint64_t byte_stream_length(const ByteStream *stream) {
        return stream->length;
}

void byte_stream_digest(ByteStream *stream, char ret[DIGEST_SIZE]) {
        memcpy(ret, DIGEST_PREFIX, strlen(DIGEST_PREFIX));
        sha256_finish(stream->hash, ret + strlen(DIGEST_PREFIX));
}

/* For a delta: its data, after the header and the operations. */
ByteStream *byte_stream_packed(ByteStream *stream) {
        return stream->patch ? stream->below->below->below : stream->below;
}

ByteStream *byte_stream_free(ByteStream *stream) {
        if (!stream)
                return NULL;
        if (stream->archive)
                (void) archive_read_free(stream->archive);
        tar_patch_free(stream->patch);
        byte_stream_free(stream->below);
#ifdef HAVE_ISAL
        gunzip_free(stream->gunzip);
#endif
        sha256_free(stream->hash);
        error_done(&stream->error);
        free(stream);
        return NULL;
}
