/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/tar.h"

#include "common/cleanup.h"
#include "common/text.h"
#include "common/utf8.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum {
        CHUNK = 64 * 1024,
        BLOCK = 10240, /* the format of the tars that are written */
};

typedef struct archive Archive;

static void archive_write_freep(Archive **archive) {
        archive_write_free(*archive);
}

static void archive_read_freep(Archive **archive) {
        archive_read_free(*archive);
}

static int fail_archive(Archive *archive, Error *reterr) {
        int code = archive_errno(archive);

        return error_setf(reterr, code > 0 ? code : EIO, "%s",
                          strna(archive_error_string(archive)));
}

/* The rest of a path after its first component "name", "" if there is no rest; NULL for a different
 * first component. A leading "./" is skipped. */
static const char *skip_name(const char *path, const char *name) {
        size_t length = strlen(name);

        while (strncmp(path, "./", 2) == 0)
                path += 2;
        if (strncmp(path, name, length) != 0 || (path[length] != '\0' && path[length] != '/'))
                return NULL;
        return path + length;
}

/* ---- writing ---- */

static int copy_file_to_tar(Archive *disk, Archive *tar, struct archive_entry *entry,
                            Error *reterr) {
        char chunk[CHUNK];
        la_ssize_t n = 0;

        if (archive_entry_size(entry) > 0)
                while ((n = archive_read_data(disk, chunk, sizeof(chunk))) > 0)
                        if (archive_write_data(tar, chunk, (size_t) n) < 0)
                                return fail_archive(tar, reterr);
        return n < 0 ? fail_archive(disk, reterr) : 0;
}

static int pack_tar_entry(Archive *disk, Archive *tar, struct archive_entry *entry,
                          const char *path, const char *name, Error *reterr) {
        const char *rest = archive_entry_pathname(entry) + strlen(path);
        cleanup_free char *renamed = text_format("%s%s", name, rest);

        if (!renamed)
                return -ENOMEM;
        archive_entry_set_pathname(entry, renamed);
        archive_entry_set_uid(entry, 0);
        archive_entry_set_gid(entry, 0);
        archive_entry_set_uname(entry, NULL);
        archive_entry_set_gname(entry, NULL);
        if (archive_entry_filetype(entry) == AE_IFSOCK)
                return 0;
        if (archive_write_header(tar, entry) < ARCHIVE_WARN)
                return fail_archive(tar, reterr);
        return copy_file_to_tar(disk, tar, entry, reterr);
}

int tar_pack(const char *path, const char *name, int fd, Error *reterr) {
        cleanup_with(archive_read_freep) Archive *disk = archive_read_disk_new();
        cleanup_with(archive_write_freep) Archive *tar = archive_write_new();
        int r = 0;

        if (!disk || !tar)
                return -ENOMEM;
        archive_write_set_format_pax_restricted(tar);
        (void) archive_write_set_bytes_per_block(tar, BLOCK);
        archive_read_disk_set_symlink_physical(disk);
        if (archive_write_open_fd(tar, fd) != ARCHIVE_OK)
                return fail_archive(tar, reterr);
        if (archive_read_disk_open(disk, path) != ARCHIVE_OK)
                return fail_archive(disk, reterr);
        while (r >= 0) {
                struct archive_entry *entry = archive_entry_new();
                int next = entry ? archive_read_next_header2(disk, entry) : ARCHIVE_FATAL;

                if (next == ARCHIVE_OK || next == ARCHIVE_WARN) {
                        (void) archive_read_disk_descend(disk);
                        r = pack_tar_entry(disk, tar, entry, path, name, reterr);
                } else if (next != ARCHIVE_EOF)
                        r = fail_archive(disk, reterr);
                archive_entry_free(entry);
                if (next == ARCHIVE_EOF)
                        break;
        }
        if (r < 0)
                return r;
        if (archive_write_close(tar) != ARCHIVE_OK)
                return fail_archive(tar, reterr);
        return 0;
}

/* ---- texts ---- */

struct TarGz {
        Archive *archive;
        time_t now;
};

int tar_gz_new(int fd, TarGz **ret, Error *reterr) {
        TarGz *tar = calloc(1, sizeof(*tar));

        if (!tar)
                return -ENOMEM;
        tar->now = time(NULL);
        tar->archive = archive_write_new();
        *ret = tar;
        if (!tar->archive)
                return -ENOMEM;
        if (archive_write_add_filter_gzip(tar->archive) != ARCHIVE_OK ||
            archive_write_set_format_pax_restricted(tar->archive) != ARCHIVE_OK ||
            archive_write_open_fd(tar->archive, fd) != ARCHIVE_OK)
                return fail_archive(tar->archive, reterr);
        return 0;
}

int tar_gz_add(TarGz *tar, const char *name, const char *data, size_t length, Error *reterr) {
        struct archive_entry *entry = archive_entry_new();
        int r = 0;

        if (!entry)
                return -ENOMEM;
        archive_entry_set_pathname(entry, name);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0600);
        archive_entry_set_size(entry, (la_int64_t) length);
        archive_entry_set_mtime(entry, tar->now, 0);
        if (archive_write_header(tar->archive, entry) < ARCHIVE_WARN ||
            archive_write_data(tar->archive, data, length) < 0)
                r = fail_archive(tar->archive, reterr);
        archive_entry_free(entry);
        return r;
}

int tar_gz_finish(TarGz *tar, Error *reterr) {
        return archive_write_close(tar->archive) == ARCHIVE_OK ? 0
                                                               : fail_archive(tar->archive, reterr);
}

TarGz *tar_gz_free(TarGz *tar) {
        if (!tar)
                return NULL;
        archive_write_free(tar->archive);
        free(tar);
        return NULL;
}

/* ---- reading ---- */

static int copy_file_from_tar(Archive *tar, Archive *disk, Error *reterr) {
        for (;;) {
                const void *data;
                size_t length;
                la_int64_t offset;
                int next = archive_read_data_block(tar, &data, &length, &offset);

                if (next == ARCHIVE_EOF)
                        return 0;
                if (next < ARCHIVE_WARN)
                        return fail_archive(tar, reterr);
                if (archive_write_data_block(disk, data, length, offset) < ARCHIVE_WARN)
                        return fail_archive(disk, reterr);
        }
}

/* The path with the first component replaced by the target's name; or NULL. */
static char *rename_path(const char *path, const char *name, const char *target) {
        const char *rest = path ? skip_name(path, name) : NULL;

        return rest ? text_format("%s%s", target, rest) : NULL;
}

static bool is_ordinary_entry(struct archive_entry *entry) {
        mode_t type = archive_entry_filetype(entry);

        return type == AE_IFREG || type == AE_IFDIR || type == AE_IFLNK ||
               archive_entry_hardlink(entry);
}

static int extract_tar_entry(Archive *tar, Archive *disk, struct archive_entry *entry,
                             const char *name, const char *target, Error *reterr) {
        const char *path = archive_entry_pathname(entry);
        cleanup_free char *renamed = rename_path(path, name, target);
        cleanup_free char *link = rename_path(archive_entry_hardlink(entry), name, target);
        int r;

        if (!renamed || (archive_entry_hardlink(entry) && !link))
                return error_setf(reterr, EBADMSG,
                                  "the container's tar contains '%s', which was "
                                  "not requested",
                                  strna(path));
        if (!is_ordinary_entry(entry)) {
                utf8_sanitize(renamed);
                fprintf(stderr, "warning: skipping '%s', which is not a file\n", renamed);
                return 0;
        }
        archive_entry_set_pathname(entry, renamed);
        if (link)
                archive_entry_set_hardlink(entry, link);
        if (archive_write_header(disk, entry) < ARCHIVE_WARN)
                return fail_archive(disk, reterr);
        r = copy_file_from_tar(tar, disk, reterr);
        if (r < 0)
                return r;
        if (archive_write_finish_entry(disk) < ARCHIVE_WARN)
                return fail_archive(disk, reterr);
        return 0;
}

int tar_unpack(int fd, const char *name, const char *target, Error *reterr) {
        cleanup_with(archive_read_freep) Archive *tar = archive_read_new();
        cleanup_with(archive_write_freep) Archive *disk = archive_write_disk_new();
        bool is_empty = true;

        if (!tar || !disk)
                return -ENOMEM;
        (void) archive_read_support_format_tar(tar);
        (void) archive_read_support_format_empty(tar);
        (void) archive_write_disk_set_options(disk, ARCHIVE_EXTRACT_TIME | ARCHIVE_EXTRACT_UNLINK |
                                                            ARCHIVE_EXTRACT_SECURE_SYMLINKS |
                                                            ARCHIVE_EXTRACT_SECURE_NODOTDOT |
                                                            ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS);
        if (archive_read_open_fd(tar, fd, BLOCK) != ARCHIVE_OK)
                return fail_archive(tar, reterr);
        for (;;) {
                struct archive_entry *entry;
                int next = archive_read_next_header(tar, &entry), r;

                if (next == ARCHIVE_EOF)
                        break;
                if (next < ARCHIVE_WARN)
                        return fail_archive(tar, reterr);
                is_empty = false;
                r = extract_tar_entry(tar, disk, entry, name, target, reterr);
                if (r < 0)
                        return r;
        }
        if (archive_write_close(disk) != ARCHIVE_OK)
                return fail_archive(disk, reterr);
        return is_empty ? error_setf(reterr, ENODATA, "the container sent no data") : 0;
}
