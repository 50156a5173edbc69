/* SPDX-License-Identifier: Apache-2.0 */

/* The table has the offset of each member's header, so that a blob is read with one seek. Names are
 * untrusted: blobs are found by name and then verified by digest. */

#include "agent/image-helper/archive/archive-members.h"

#include "agent/image-helper/archive/tar-name.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/text.h"

#include <archive_entry.h>
#include <fcntl.h>

enum {
        MEMBERS_MAX = 65536,
        LINKS_MAX = 8
};

#define SPOOL_BYTES_MAX (UINT64_C(256) << 30)

struct ImageArchive {
        int fd;
        ArchiveMember *members; /* sorted by name, then by order */
        size_t n_members;
};

/* 1: it is compressed with gzip or zstd. 0: it is plain, or not an archive. */
static int detect_compression(int fd, Error *reterr) {
        char start[16] = { 0 };
        ssize_t n = pread(fd, start, sizeof(start), 0);

        if (n < 4)
                return 0;
        if (memcmp(start, "\x1f\x8b", 2) == 0 || memcmp(start, "\x28\xb5\x2f\xfd", 4) == 0)
                return 1;
        return compression_check(start, (size_t) n, reterr);
}

static int spool_archive(int fd, int spool_fd, Error *reterr) {
        cleanup_close int out = openat(spool_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        cleanup_with(byte_stream_freep) ByteStream *plain = NULL;
        ByteStream *packed;
        int r;

        if (out < 0)
                return error_setf(reterr, errno, "no space to decompress it: %s", strerror(errno));
        r = byte_stream_new_file(fd, 0, &packed);
        if (r < 0)
                return r;
        r = byte_stream_new_unpacked_take(packed, &plain, reterr);
        if (r < 0)
                return r;
        byte_stream_limit(plain, SPOOL_BYTES_MAX);
        r = byte_stream_copy(plain, out, reterr);
        return r < 0 ? r : TAKE_FD(out);
}

/* The target of a symbolic link is relative to the link, that of a hard link to the top. */
static int link_target(const char *name, struct archive_entry *entry, char **ret) {
        const char *symlink = archive_entry_symlink(entry), *hard = archive_entry_hardlink(entry);
        cleanup_free char *joined = NULL;
        const char *slash = strrchr(name, '/');

        *ret = NULL;
        if (hard)
                return tar_name_clean(hard, ret, NULL);
        if (archive_entry_filetype(entry) != AE_IFLNK || !symlink)
                return 0;
        joined = text_format("%.*s/%s", slash ? (int) (slash - name) : 0, name, symlink);
        if (!joined)
                return -ENOMEM;
        return tar_name_clean(joined, ret, NULL);
}

static int add_member(ImageArchive *source, struct archive *archive, struct archive_entry *entry,
                      Error *reterr) {
        cleanup_free char *name = NULL, *link = NULL;
        const char *raw = archive_entry_pathname(entry);
        int64_t size = archive_entry_size(entry);

        if (source->n_members >= MEMBERS_MAX)
                return error_setf(reterr, E2BIG, "has more than %d members", MEMBERS_MAX);
        /* Members that are not files, or have an invalid name, are never requested. */
        if (!raw || tar_name_clean(raw, &name, NULL) < 0 || link_target(name, entry, &link) < 0)
                return 0;
        if (!link && (archive_entry_filetype(entry) != AE_IFREG || size < 0))
                return 0;
        if (!ARRAY_RESERVE(source->members, source->n_members, 1))
                return -ENOMEM;
        source->members[source->n_members] = (ArchiveMember){
                .name = TAKE_PTR(name),
                .link = TAKE_PTR(link),
                .position = (uint64_t) archive_read_header_position(archive),
                .size = (uint64_t) size,
                .order = source->n_members,
        };
        source->n_members++;
        return 0;
}

static int compare_members(const void *a, const void *b) {
        const ArchiveMember *one = a, *other = b;
        int c = strcmp(one->name, other->name);

        if (c != 0)
                return c;
        return one->order < other->order ? -1 : one->order > other->order;
}

static int next_header(struct archive *archive, struct archive_entry **ret, Error *reterr) {
        int r = archive_read_next_header(archive, ret);

        if (r == ARCHIVE_EOF)
                return 0;
        if (r == ARCHIVE_OK)
                return 1;
        r = archive_reader_error(archive);
        if (r != -EBADMSG)
                return r;
        return error_setf(reterr, EBADMSG, "is not a valid tar archive: %s",
                          archive_error_string(archive));
}

static int read_member_table(ImageArchive *source, Error *reterr) {
        /* The order matters: the archive is freed before the stream that it reads. */
        cleanup_with(byte_stream_freep) ByteStream *file = NULL;
        cleanup_with(archive_read_freep) struct archive *archive = NULL;
        struct archive_entry *entry;
        int r;

        r = byte_stream_new_file(source->fd, 0, &file);
        if (r >= 0)
                r = byte_stream_open_tar(file, &archive, NULL);
        if (r == -EBADMSG)
                return error_setf(reterr, EBADMSG,
                                  "is neither a tar archive nor one compressed with gzip or zstd");
        if (r < 0)
                return r;
        while ((r = next_header(archive, &entry, reterr)) > 0) {
                r = add_member(source, archive, entry, reterr);
                if (r < 0)
                        break;
        }
        if (r < 0)
                return r;
        if (source->n_members > 0)
                qsort(source->members, source->n_members, sizeof(ArchiveMember), compare_members);
        return 0;
}

int image_archive_open(int fd, int spool_fd, ImageArchive **ret, Error *reterr) {
        cleanup_with(image_archive_freep) ImageArchive *source = calloc(1, sizeof(*source));
        int r;

        if (!source)
                return -ENOMEM;
        source->fd = -EBADF;
        r = detect_compression(fd, reterr);
        if (r < 0)
                return r;
        r = r > 0 ? spool_archive(fd, spool_fd, reterr) : fcntl(fd, F_DUPFD_CLOEXEC, 3);
        source->fd = r;
        if (r < 0)
                return r == -1 ? -errno : r;
        r = read_member_table(source, reterr);
        if (r < 0)
                return r;
        if (source->n_members == 0)
                return error_setf(reterr, EBADMSG, "is not an image archive: it is empty");
        *ret = TAKE_PTR(source);
        return 0;
}

/* The last member with a name is used, so the searched name sorts after all members that have it.
 */
static int compare_name_behind_member(const char *name, const ArchiveMember *member) {
        return strcmp(name, member->name) < 0 ? -1 : 1;
}

static const ArchiveMember *find_exactly(const ImageArchive *source, const char *name) {
        size_t behind = ARRAY_FIND_PLACE(name, source->members, source->n_members,
                                         compare_name_behind_member);

        if (behind == 0 || !streq(source->members[behind - 1].name, name))
                return NULL;
        return &source->members[behind - 1];
}

const ArchiveMember *image_archive_find(const ImageArchive *source, const char *name) {
        const ArchiveMember *member = find_exactly(source, name);

        for (unsigned i = 0; member && member->link; i++)
                member = i < LINKS_MAX ? find_exactly(source, member->link) : NULL;
        return member;
}

const ArchiveMember *image_archive_next(const ImageArchive *source, const ArchiveMember *previous) {
        const ArchiveMember *next = previous ? previous + 1 : source->members;

        return next < source->members + source->n_members ? next : NULL;
}

int image_archive_stream(const ImageArchive *source, const ArchiveMember *member, ByteStream **ret,
                         Error *reterr) {
        cleanup_with(byte_stream_freep) ByteStream *file = NULL;
        struct archive *archive;
        struct archive_entry *entry;
        int r;

        r = byte_stream_new_file(source->fd, member->position, &file);
        if (r < 0)
                return r;
        r = byte_stream_open_tar(file, &archive, reterr);
        if (r < 0)
                return r;
        r = next_header(archive, &entry, reterr);
        if (r > 0)
                return byte_stream_new_entry_take(archive, TAKE_PTR(file), ret);
        (void) archive_read_free(archive);
        return r < 0 ? r : error_setf(reterr, EBADMSG, "changed while it was read");
}

static int read_whole_stream(ByteStream *stream, size_t length, char **ret, Error *reterr) {
        cleanup_free char *buffer = calloc(1, length + 1);
        size_t done = 0;

        if (!buffer)
                return -ENOMEM;
        for (;;) {
                const void *data;
                ssize_t n = byte_stream_read(stream, &data, reterr);

                if (n < 0)
                        return (int) n;
                if (n == 0)
                        break;
                if ((size_t) n > length - done)
                        return error_setf(reterr, EBADMSG, "changed while it was read");
                memcpy(buffer + done, data, (size_t) n);
                done += (size_t) n;
        }
        if (done != length)
                return error_setf(reterr, EBADMSG, "is truncated");
        *ret = TAKE_PTR(buffer);
        return 0;
}

int image_archive_read(const ImageArchive *source, const char *name, size_t max_bytes,
                       char **ret_data, size_t *ret_length, Error *reterr) {
        const ArchiveMember *member = image_archive_find(source, name);
        cleanup_with(byte_stream_freep) ByteStream *stream = NULL;
        int r;

        if (!member)
                return error_setf(reterr, ENOENT, "'%s' is missing", name);
        if (member->size > max_bytes)
                return error_setf(reterr, EFBIG, "'%s' is larger than %zu bytes", name, max_bytes);
        r = image_archive_stream(source, member, &stream, reterr);
        if (r < 0)
                return r;
        r = read_whole_stream(stream, (size_t) member->size, ret_data, reterr);
        if (r < 0)
                return r;
        *ret_length = (size_t) member->size;
        return 0;
}

ImageArchive *image_archive_free(ImageArchive *source) {
        if (!source)
                return NULL;
        for (size_t i = 0; i < source->n_members; i++) {
                free(source->members[i].name);
                free(source->members[i].link);
        }
        free(source->members);
        close_fd(source->fd);
        free(source);
        return NULL;
}
