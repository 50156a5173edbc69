/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An image archive (tar) as a table of members that can be read in any order. Its images are in
 * catalog.h. */

#include "agent/image-helper/archive/byte-stream.h"

typedef struct ArchiveMember {
        char *name;        /* clean: "blobs/sha256/…" */
        char *link;        /* clean name of the link's target, or NULL */
        uint64_t position; /* position of its header */
        uint64_t size;
        size_t order; /* position among the members */
} ArchiveMember;

typedef struct ImageArchive ImageArchive;

/* Opens an archive: a tar, or a tar compressed with gzip or zstd, which is decompressed once into
 * an unnamed file in the directory 'spool_fd'. 0, or -errno with a message. */
int image_archive_open(int fd, int spool_fd, ImageArchive **ret, Error *reterr);

/* The regular file with that name, following links. NULL if there is none. If several members have
 * the same name, the last one is used, as if the archive were unpacked. */
const ArchiveMember *image_archive_find(const ImageArchive *source, const char *name);

/* The member after 'previous' in the order of names, or the first one if it is NULL. NULL after the
 * last. */
const ArchiveMember *image_archive_next(const ImageArchive *source, const ArchiveMember *previous);

/* A stream of the member's bytes. */
int image_archive_stream(const ImageArchive *source, const ArchiveMember *member, ByteStream **ret,
                         Error *reterr);

/* Reads a small member, and appends a NUL. -ENOENT with a message if it is missing, -EFBIG. */
int image_archive_read(const ImageArchive *source, const char *name, size_t max_bytes,
                       char **ret_data, size_t *ret_length, Error *reterr);

ImageArchive *image_archive_free(ImageArchive *source);
DEFINE_CLEANUP(ImageArchive *, image_archive_free)
