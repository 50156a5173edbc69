/* SPDX-License-Identifier: Apache-2.0 */

/* Applies the rules that layer-unpack.c applies later, so that a damaged or hostile tar is refused
 * when it is imported, and not only when a pod starts. */

#include "agent/image-helper/import/rootfs-check.h"

#include "agent/image-helper/archive/tar-name.h"
#include "agent/image-helper/unpack/layer-unpack.h"
#include "common/cleanup.h"
#include "common/hash.h"

#include <archive_entry.h>

typedef struct RootfsCheck {
        uint64_t bytes;
        unsigned entries;
        unsigned files; /* all but directories */
        bool has_layout, has_index, has_manifest, has_blob;
} RootfsCheck;

/* The names that "docker save" and other tools give to configurations and layers. */
static bool is_blob_name(const char *name) {
        const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;

        return streq(base, "layer.tar") || strncmp(name, "blobs/sha256/", 13) == 0 ||
               strspn(base, "0123456789abcdef") == SHA256_HEX_SIZE - 1;
}

static void note_archive_name(RootfsCheck *check, const char *name) {
        check->has_layout = check->has_layout || streq(name, "oci-layout");
        check->has_index = check->has_index || streq(name, "index.json");
        check->has_manifest = check->has_manifest || streq(name, "manifest.json");
        check->has_blob = check->has_blob || is_blob_name(name);
}

static int check_entry_name(const char *name, Error *reterr) {
        cleanup_free char *parent = NULL;
        const char *base, *hidden;
        TarNameKind kind;
        int r;

        if (name[0] == '\0')
                return 0;
        r = tar_name_split(name, &parent, &base);
        if (r >= 0)
                r = tar_name_classify(base, &kind, &hidden, reterr);
        if (r < 0)
                return r;
        if (tar_name_is_below_whiteout(parent) && !tar_name_is_aufs(parent))
                return error_setf(reterr, EINVAL, "is below a whiteout");
        return 0;
}

static int check_entry_size(RootfsCheck *check, struct archive_entry *entry, Error *reterr) {
        int64_t size = archive_entry_size(entry);

        if (size < 0)
                return error_setf(reterr, EBADMSG, "has a negative size");
        if ((uint64_t) size > IMAGE_BYTES_MAX - check->bytes)
                return error_setf(reterr, EFBIG, "the files are larger than %llu GiB",
                                  (unsigned long long) (IMAGE_BYTES_MAX >> 30));
        check->bytes += (uint64_t) size;
        return 0;
}

static int check_hard_link(struct archive_entry *entry, Error *reterr) {
        cleanup_free char *target = NULL;
        int r = tar_name_clean(archive_entry_hardlink(entry), &target, reterr);

        if (r < 0)
                return error_prefixf(reterr, r, "the target of the hard link");
        if (target[0] == '\0')
                return error_setf(reterr, EINVAL, "is a hard link without a target");
        return 0;
}

static int check_entry_kind(RootfsCheck *check, struct archive_entry *entry, Error *reterr) {
        if (archive_entry_hardlink(entry))
                return check_hard_link(entry, reterr);
        switch (archive_entry_filetype(entry)) {
        case AE_IFREG:
                return check_entry_size(check, entry, reterr);
        case AE_IFDIR:
        case AE_IFLNK:
        case AE_IFIFO:
        case AE_IFCHR: /* omitted when unpacking */
        case AE_IFBLK:
                return 0;
        default:
                return error_setf(reterr, EINVAL, "has a type that is not supported in images");
        }
}

static int check_entry(RootfsCheck *check, struct archive_entry *entry, Error *reterr) {
        const char *raw = archive_entry_pathname(entry);
        cleanup_free char *name = NULL;
        int r;

        if (check->entries++ >= IMAGE_ENTRIES_MAX)
                return error_setf(reterr, E2BIG, "has more than %d entries", IMAGE_ENTRIES_MAX);
        if (!raw)
                return error_setf(reterr, EINVAL, "entry %u has no name", check->entries);
        r = tar_name_clean(raw, &name, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "entry %u", check->entries);
        note_archive_name(check, name);
        check->files += archive_entry_filetype(entry) != AE_IFDIR;
        r = check_entry_name(name, reterr);
        if (r >= 0)
                r = check_entry_kind(check, entry, reterr);
        return r < 0 ? error_prefixf(reterr, r, "'%s'", name) : 0;
}

static int check_all_entries(RootfsCheck *check, struct archive *archive, Error *reterr) {
        for (;;) {
                struct archive_entry *entry;
                int r = archive_read_next_header(archive, &entry);

                if (r == ARCHIVE_EOF)
                        return 0;
                if (r != ARCHIVE_OK)
                        return error_setf(reterr, -archive_reader_error(archive),
                                          "is not a valid tar, plain or compressed with gzip or "
                                          "zstd: %s",
                                          archive_error_string(archive));
                r = check_entry(check, entry, reterr);
                if (r < 0)
                        return r;
        }
}

int rootfs_tar_check(int fd, Error *reterr) {
        cleanup_with(byte_stream_freep) ByteStream *tar = NULL;
        cleanup_with(archive_read_freep) struct archive *archive = NULL;
        RootfsCheck check = { 0 };
        int r;

        /* The data is read instead of skipped, so that a truncated tar is detected. */
        r = byte_stream_new_pipe(fd, &tar);
        if (r < 0)
                return r;
        r = byte_stream_open_tar(tar, &archive, NULL);
        if (r == -EBADMSG)
                return error_setf(reterr, EBADMSG,
                                  "is neither a tar nor one compressed with gzip or zstd");
        if (r >= 0)
                r = check_all_entries(&check, archive, reterr);
        if (r < 0)
                return r;
        if ((check.has_layout && check.has_index) || (check.has_manifest && check.has_blob))
                return error_setf(reterr, EINVAL,
                                  "is an image archive, not a root file system: import it without "
                                  "--name");
        if (check.files == 0)
                return error_setf(reterr, EINVAL, "contains no file");
        return 0;
}
