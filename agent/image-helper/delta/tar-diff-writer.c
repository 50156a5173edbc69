/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/delta/tar-diff-writer.h"

#include "agent/image-helper/delta/tar-patch.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <archive.h>
#include <archive_entry.h>

enum {
        ADD_BYTES = 64 * 1024, /* limit of one operation */
        VARINT_BYTES_MAX = 10
};

#define COMPRESSION_LEVEL "12"

struct TarDiffWriter {
        int fd;
        Sha256 *hash;
        uint64_t size;
        struct archive *archive; /* the zstd stream */
        const uint8_t *pending;  /* data that has not been written yet */
        uint64_t n_pending;
        char *path; /* path of the source */
        uint64_t position;
        uint8_t sums[ADD_BYTES];
};

static int emit_bytes(TarDiffWriter *writer, const void *data, size_t length) {
        int r = write_all(writer->fd, data, length);

        if (r < 0)
                return r;
        sha256_update(writer->hash, data, length);
        writer->size += length;
        return 0;
}

static la_ssize_t on_archive_write(struct archive *archive, void *userdata, const void *data,
                                   size_t length) {
        int r = emit_bytes(userdata, data, length);

        if (r >= 0)
                return (la_ssize_t) length;
        archive_set_error(archive, -r, "%s", strerror(-r));
        return ARCHIVE_FATAL;
}

static int set_writer_error(const TarDiffWriter *writer, Error *reterr) {
        int code = archive_errno(writer->archive);
        const char *text = archive_error_string(writer->archive);

        return error_setf(reterr, code > 0 ? code : EIO, "the delta cannot be written: %s",
                          text ? text : "zstd failed");
}

static int open_zstd_stream(TarDiffWriter *writer, Error *reterr) {
        struct archive_entry *entry = archive_entry_new();
        bool done;

        if (!entry)
                return -ENOMEM;
        archive_entry_set_filetype(entry, AE_IFREG);
        done = archive_write_add_filter_zstd(writer->archive) == ARCHIVE_OK &&
               archive_write_set_filter_option(writer->archive, "zstd", "compression-level",
                                               COMPRESSION_LEVEL) == ARCHIVE_OK &&
               archive_write_set_format_raw(writer->archive) == ARCHIVE_OK &&
               archive_write_set_bytes_in_last_block(writer->archive, 1) == ARCHIVE_OK &&
               archive_write_open(writer->archive, writer, NULL, on_archive_write, NULL) ==
                       ARCHIVE_OK &&
               archive_write_header(writer->archive, entry) == ARCHIVE_OK;
        archive_entry_free(entry);
        return done ? 0 : set_writer_error(writer, reterr);
}

int tar_diff_writer_new(int fd, TarDiffWriter **ret, Error *reterr) {
        cleanup_with(tar_diff_writer_freep) TarDiffWriter *writer = calloc(1, sizeof(*writer));
        int r;

        if (!writer)
                return -ENOMEM;
        writer->fd = fd;
        writer->hash = sha256_new();
        writer->archive = archive_write_new();
        if (!writer->hash || !writer->archive)
                return -ENOMEM;
        r = emit_bytes(writer, TAR_PATCH_HEADER, TAR_PATCH_HEADER_SIZE);
        if (r < 0)
                return r;
        r = open_zstd_stream(writer, reterr);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(writer);
        return 0;
}

static int compress_bytes(TarDiffWriter *writer, const void *data, size_t length, Error *reterr) {
        la_ssize_t n = length > 0 ? archive_write_data(writer->archive, data, length) : 0;

        return n < 0 || (size_t) n != length ? set_writer_error(writer, reterr) : 0;
}

static int write_operation(TarDiffWriter *writer, TarPatchOperation operation, uint64_t size,
                           const void *data, Error *reterr) {
        uint8_t head[1 + VARINT_BYTES_MAX] = { (uint8_t) operation };
        size_t n = 1;
        uint64_t rest = size;
        int r;

        do {
                head[n++] = (uint8_t) ((rest & 0x7F) | (rest > 0x7F ? 0x80 : 0));
                rest >>= 7;
        } while (rest > 0);
        r = compress_bytes(writer, head, n, reterr);
        return r < 0 || !data ? r : compress_bytes(writer, data, (size_t) size, reterr);
}

static int flush_pending(TarDiffWriter *writer, Error *reterr) {
        uint64_t n = writer->n_pending;

        writer->n_pending = 0;
        return n == 0 ? 0 : write_operation(writer, TAR_PATCH_DATA, n, writer->pending, reterr);
}

int tar_diff_writer_data(TarDiffWriter *writer, const uint8_t *data, uint64_t size, Error *reterr) {
        int r;

        if (writer->n_pending > 0 && writer->pending + writer->n_pending == data) {
                writer->n_pending += size;
                return 0;
        }
        r = flush_pending(writer, reterr);
        writer->pending = data;
        writer->n_pending = size;
        return r;
}

static int go_to_source(TarDiffWriter *writer, const char *path, uint64_t position, Error *reterr) {
        int r = flush_pending(writer, reterr);

        if (r < 0)
                return r;
        if (!streq_ptr(writer->path, path)) {
                (void) text_replace(&writer->path, path);
                writer->position = 0;
                if (!writer->path)
                        return -ENOMEM;
                r = write_operation(writer, TAR_PATCH_OPEN, strlen(path), path, reterr);
                if (r < 0)
                        return r;
        }
        if (writer->position != position) {
                r = write_operation(writer, TAR_PATCH_SEEK, position, NULL, reterr);
                if (r < 0)
                        return r;
        }
        writer->position = position;
        return 0;
}

int tar_diff_writer_copy(TarDiffWriter *writer, const char *path, uint64_t position, uint64_t size,
                         Error *reterr) {
        int r = go_to_source(writer, path, position, reterr);

        writer->position += size;
        return r < 0 ? r : write_operation(writer, TAR_PATCH_COPY, size, NULL, reterr);
}

int tar_diff_writer_add(TarDiffWriter *writer, const char *path, uint64_t position,
                        const uint8_t *from, const uint8_t *to, uint64_t size, Error *reterr) {
        int r = go_to_source(writer, path, position, reterr);

        while (r >= 0 && size > 0) {
                size_t n = (size_t) MIN(size, (uint64_t) ADD_BYTES);

                for (size_t i = 0; i < n; i++)
                        writer->sums[i] = (uint8_t) (to[i] - from[i]);
                r = write_operation(writer, TAR_PATCH_ADD_DATA, n, writer->sums, reterr);
                writer->position += n;
                from += n;
                to += n;
                size -= n;
        }
        return r;
}

int tar_diff_writer_finish(TarDiffWriter *writer, Error *reterr) {
        int r = flush_pending(writer, reterr);

        if (r < 0)
                return r;
        return archive_write_close(writer->archive) == ARCHIVE_OK
                       ? 0
                       : set_writer_error(writer, reterr);
}

void tar_diff_writer_result(TarDiffWriter *writer, char ret[DIGEST_SIZE], uint64_t *ret_size) {
        memcpy(ret, DIGEST_PREFIX, strlen(DIGEST_PREFIX));
        sha256_finish(writer->hash, ret + strlen(DIGEST_PREFIX));
        *ret_size = writer->size;
}

TarDiffWriter *tar_diff_writer_free(TarDiffWriter *writer) {
        if (!writer)
                return NULL;
        if (writer->archive)
                (void) archive_write_free(writer->archive);
        sha256_free(writer->hash);
        free(writer->path);
        free(writer);
        return NULL;
}
