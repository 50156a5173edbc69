/* SPDX-License-Identifier: Apache-2.0 */

/* One entry after the other, in the order of the tar. Only the content of an entry is used
 * unchanged. Its name is cleaned (tar-name.h), its location is resolved and opened without links
 * (layer-tree.h), and its metadata is set on the descriptor of the created file.
 *
 * Device nodes are omitted: a container gets its /dev from the runtime, and a node with a number
 * from an untrusted image is either useless or a security hole. For overlayfs, a node 0:0 would
 * even be a whiteout. */

#include "agent/image-helper/unpack/layer-unpack.h"

#include "agent/image-helper/archive/tar-name.h"
#include "agent/image-helper/unpack/entry-time.h"
#include "agent/image-helper/unpack/layer-tree.h"
#include "common/cleanup.h"
#include "common/file-copy.h"
#include "common/file.h"
#include "common/log.h"

#include <archive_entry.h>
#include <fcntl.h>
#include <sys/mman.h>

enum {
        XATTRS_MAX = 128
};

typedef struct UnpackedLayer {
        LayerTree *tree;
        struct archive *archive;
        ByteStream *tar; /* the stream that it reads */
        UnpackBudget *budget;
        unsigned entries; /* so far */
        unsigned devices; /* omitted */
        bool has_top;     /* the tar has an entry for the top directory */
        bool is_over;     /* the tar ended at the end of a file's data */
} UnpackedLayer;

UnpackBudget *unpack_budget_new(void) {
        UnpackBudget *budget = mmap(NULL, sizeof(*budget), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        if (budget == MAP_FAILED)
                return NULL;
        atomic_init(&budget->bytes, IMAGE_BYTES_MAX);
        atomic_init(&budget->entries, IMAGE_ENTRIES_MAX);
        atomic_init(&budget->lookups, IMAGE_LOOKUPS_MAX);
        return budget;
}

UnpackBudget *unpack_budget_free(UnpackBudget *budget) {
        if (budget)
                (void) munmap(budget, sizeof(*budget));
        return NULL;
}

/* False if the budget is used up. */
static bool take_from_budget(_Atomic uint64_t *rest, uint64_t n) {
        uint64_t left = atomic_load(rest);

        do
                if (n > left)
                        return false;
        while (!atomic_compare_exchange_weak(rest, &left, left - n));
        return true;
}

static int spend_unpack_budget(const UnpackedLayer *layer, uint64_t bytes, Error *reterr) {
        if (take_from_budget(&layer->budget->bytes, bytes))
                return 0;
        return error_setf(reterr, EFBIG, "the image has files of more than %llu bytes",
                          (unsigned long long) IMAGE_BYTES_MAX);
}

static int read_entry_metadata(struct archive_entry *entry, FileMetadata *ret, Error *reterr) {
        int64_t uid = archive_entry_uid(entry), gid = archive_entry_gid(entry);
        struct timespec now = { .tv_nsec = UTIME_NOW };

        if (uid < 0 || uid >= UINT32_MAX || gid < 0 || gid >= UINT32_MAX)
                return error_setf(reterr, EINVAL, "the owner is out of range");
        *ret = (FileMetadata){
                .uid = (uid_t) uid,
                .gid = (gid_t) gid,
                .mode = archive_entry_perm(entry) & 07777,
                .times = { now, now },
        };
        if (archive_entry_mtime_is_set(entry))
                ret->times[0] = ret->times[1] =
                        (struct timespec){ .tv_sec = archive_entry_read_mtime(entry),
                                           .tv_nsec = archive_entry_mtime_nsec(entry) };
        return 0;
}

static int apply_xattrs(int fd, struct archive_entry *entry, Error *reterr) {
        const char *name;
        const void *value;
        size_t size;

        if (archive_entry_xattr_reset(entry) > XATTRS_MAX)
                return error_setf(reterr, E2BIG, "has more than %d extended attributes",
                                  XATTRS_MAX);
        while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK) {
                int r;

                if (!name || !xattr_is_allowed(name))
                        continue;
                r = xattr_apply(fd, name, value, size);
                if (r < 0)
                        return error_prefixf(reterr, r, "the attribute '%s'", name);
        }
        return 0;
}

/* Sets everything except the contents, in an order that loses nothing: changing the owner clears
 * setuid and file capabilities, and each change updates a timestamp. */
static int finish_unpacked_file(int fd, struct archive_entry *entry, Error *reterr) {
        FileMetadata metadata;
        int r;

        r = read_entry_metadata(entry, &metadata, reterr);
        if (r < 0)
                return r;
        r = file_metadata_apply(fd, &metadata);
        if (r < 0)
                return r;
        r = apply_xattrs(fd, entry, reterr);
        if (r < 0)
                return r;
        return file_metadata_apply_times(fd, &metadata);
}

/* Some writers omit the padding of the last file, and the blocks after it. All data is present, and
 * Go's readers accept it. */
static bool ends_with_file(UnpackedLayer *layer, uint64_t end, uint64_t size) {
        layer->is_over = end == size && byte_stream_is_over(layer->tar);
        return layer->is_over;
}

static int write_contents(UnpackedLayer *layer, int fd, uint64_t size, Error *reterr) {
        uint64_t end = 0;

        for (;;) {
                const void *data;
                size_t length;
                la_int64_t offset;
                int r = archive_read_data_block(layer->archive, &data, &length, &offset);

                if (r == ARCHIVE_EOF)
                        break;
                if (r != ARCHIVE_OK && ends_with_file(layer, end, size))
                        break;
                if (r != ARCHIVE_OK)
                        return error_setf(reterr, EBADMSG, "%s",
                                          archive_error_string(layer->archive));
                if (offset < 0 || length > size || (uint64_t) offset > size - length)
                        return error_setf(reterr, EBADMSG, "has more data than its size");
                r = pwrite_all(fd, data, length, (uint64_t) offset);
                if (r < 0)
                        return r;
                end = MAX(end, (uint64_t) offset + length);
        }
        /* The file may end with a hole. */
        return end < size && ftruncate(fd, (off_t) size) < 0 ? -errno : 0;
}

static int create_file(const UnpackedLayer *layer, const char *base) {
        int fd = openat(layer_tree_fd(layer->tree), base,
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

        return fd < 0 ? -errno : fd;
}

static int unpack_file(UnpackedLayer *layer, struct archive_entry *entry, const char *base,
                       Error *reterr) {
        int64_t size = archive_entry_size(entry);
        cleanup_close int fd = -EBADF;
        int r;

        if (size < 0)
                return error_setf(reterr, EBADMSG, "has a negative size");
        r = spend_unpack_budget(layer, (uint64_t) size, reterr);
        if (r < 0)
                return r;
        fd = create_file(layer, base);
        if (fd == -EEXIST) {
                r = layer_tree_clear(layer->tree, base, reterr);
                fd = r < 0 ? r : create_file(layer, base);
        }
        if (fd < 0)
                return fd;
        r = write_contents(layer, fd, (uint64_t) size, reterr);
        return r < 0 ? r : finish_unpacked_file(fd, entry, reterr);
}

static int unpack_directory(UnpackedLayer *layer, struct archive_entry *entry, const char *base,
                            Error *reterr) {
        cleanup_close int fd = layer_tree_make_directory(layer->tree, base, reterr);

        return fd < 0 ? fd : finish_unpacked_file(fd, entry, reterr);
}

/* Entries that are not opened: created by name, in a directory that only this process can
 * change. */
static int unpack_special_file(UnpackedLayer *layer, struct archive_entry *entry, const char *base,
                               Error *reterr) {
        const char *target = archive_entry_symlink(entry);
        FileMetadata metadata;
        int fd = layer_tree_fd(layer->tree), r;

        r = read_entry_metadata(entry, &metadata, reterr);
        if (r < 0)
                return r;
        r = layer_tree_clear(layer->tree, base, reterr);
        if (r < 0)
                return r;
        if (archive_entry_filetype(entry) == AE_IFIFO)
                r = mknodat(fd, base, S_IFIFO | metadata.mode, 0);
        else if (target && target[0])
                r = symlinkat(target, fd, base);
        else
                return error_setf(reterr, EINVAL, "is a symbolic link without a target");
        return r < 0 ? -errno : file_metadata_apply_at(fd, base, &metadata);
}

static int unpack_link(UnpackedLayer *layer, struct archive_entry *entry, const char *base,
                       Error *reterr) {
        cleanup_free char *target = NULL;
        uint64_t copied;
        int r;

        if (archive_entry_size_is_set(entry) && archive_entry_size(entry) > 0)
                return error_setf(reterr, EINVAL, "is a hard link with contents of its own");
        r = tar_name_clean(archive_entry_hardlink(entry), &target, reterr);
        if (r < 0)
                return r;
        if (target[0] == '\0')
                return error_setf(reterr, EINVAL, "is a hard link without a target");
        r = layer_tree_link(layer->tree, base, target, &copied, reterr);
        return r < 0 ? r : spend_unpack_budget(layer, copied, reterr);
}

static int unpack_ordinary(UnpackedLayer *layer, struct archive_entry *entry, const char *parent,
                           const char *base, Error *reterr) {
        int r = layer_tree_enter(layer->tree, parent, reterr);

        if (r < 0)
                return r;
        if (archive_entry_hardlink(entry))
                return unpack_link(layer, entry, base, reterr);
        switch (archive_entry_filetype(entry)) {
        case AE_IFREG:
                return unpack_file(layer, entry, base, reterr);
        case AE_IFDIR:
                return unpack_directory(layer, entry, base, reterr);
        case AE_IFLNK:
        case AE_IFIFO:
                return unpack_special_file(layer, entry, base, reterr);
        case AE_IFCHR:
        case AE_IFBLK:
                layer->devices++;
                return 0;
        default:
                return error_setf(reterr, EINVAL, "has a type that is not supported in images");
        }
}

static int unpack_top_directory(UnpackedLayer *layer, struct archive_entry *entry, Error *reterr) {
        int r;

        /* Other kinds of files without a name are skipped, as in containerd. */
        if (archive_entry_hardlink(entry) || archive_entry_filetype(entry) != AE_IFDIR)
                return 0;
        layer->has_top = true;
        r = layer_tree_enter(layer->tree, "", reterr);
        if (r < 0)
                return r;
        r = finish_unpacked_file(layer_tree_fd(layer->tree), entry, reterr);
        if (r < 0)
                return r;
        return layer_tree_keep_times(layer->tree);
}

/* Hides one name of the lower layers, or all if NULL. If the directory does not exist, there is
 * nothing to hide, and it is not created. */
static int hide_lower_names(UnpackedLayer *layer, const char *parent, const char *hidden,
                            Error *reterr) {
        int r = layer_tree_enter_to_hide(layer->tree, parent, reterr);

        if (r <= 0)
                return r;
        return hidden ? layer_tree_apply_whiteout(layer->tree, hidden, reterr)
                      : layer_tree_apply_opaque(layer->tree, reterr);
}

static int unpack_entry_by_name(UnpackedLayer *layer, struct archive_entry *entry, const char *name,
                                Error *reterr) {
        cleanup_free char *parent = NULL;
        const char *base, *hidden = NULL;
        TarNameKind kind;
        int r;

        if (name[0] == '\0')
                return unpack_top_directory(layer, entry, reterr);
        r = tar_name_split(name, &parent, &base);
        if (r < 0)
                return r;
        r = tar_name_classify(base, &kind, &hidden, reterr);
        if (r < 0)
                return r;
        if (kind == TAR_NAME_IGNORED || tar_name_is_aufs(parent))
                return 0;
        if (tar_name_is_below_whiteout(parent))
                return error_setf(reterr, EINVAL, "is below a whiteout");
        if (kind == TAR_NAME_ORDINARY)
                return unpack_ordinary(layer, entry, parent, base, reterr);
        return hide_lower_names(layer, parent, hidden, reterr);
}

static int unpack_tar_entry(UnpackedLayer *layer, struct archive_entry *entry, Error *reterr) {
        const char *raw = archive_entry_pathname(entry);
        cleanup_free char *name = NULL;
        int r;

        layer->entries++;
        if (!take_from_budget(&layer->budget->entries, 1))
                return error_setf(reterr, E2BIG, "the image has more than %d entries",
                                  IMAGE_ENTRIES_MAX);
        if (!raw)
                return error_setf(reterr, EINVAL, "an entry of the layer has no name");
        r = tar_name_clean(raw, &name, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "entry %u of the layer", layer->entries);
        r = unpack_entry_by_name(layer, entry, name, reterr);
        return r < 0 ? error_prefixf(reterr, r, "'%s'", name) : 0;
}

static int unpack_all_entries(UnpackedLayer *layer, Error *reterr) {
        for (;;) {
                struct archive_entry *entry;
                int r = archive_read_next_header(layer->archive, &entry);

                if (r == ARCHIVE_EOF)
                        return 0;
                /* A warning concerns a name or an attribute that could not be decoded. */
                if (r != ARCHIVE_OK)
                        return error_setf(reterr, EBADMSG, "the layer is not a valid tar: %s",
                                          archive_error_string(layer->archive));
                r = unpack_tar_entry(layer, entry, reterr);
                if (r < 0 || layer->is_over)
                        return r;
        }
}

int unpack_layer_tar(ByteStream *tar, int fd, const LayerView *below, UnpackBudget *budget,
                     Error *reterr) {
        cleanup_with(archive_read_freep) struct archive *archive = NULL;
        cleanup_with(layer_tree_freep) LayerTree *tree = NULL;
        UnpackedLayer layer = { .tar = tar, .budget = budget };
        LayerView counted = *below;
        int r;

        counted.lookups = &budget->lookups;
        byte_stream_limit(tar, IMAGE_BYTES_MAX);
        r = byte_stream_open_tar(tar, &archive, reterr);
        if (r < 0)
                return r;
        r = layer_tree_new(fd, &counted, &tree);
        if (r < 0)
                return r;
        layer.archive = archive;
        layer.tree = tree;
        r = unpack_all_entries(&layer, reterr);
        layer_tree_leave(tree);
        if (r < 0)
                return r;
        if (!layer.has_top)
                r = layer_tree_inherit_top(tree, reterr);
        if (r < 0)
                return r;
        if (layer.devices > 0)
                log_info("Skipped %u device nodes of the image", layer.devices);
        return byte_stream_drain(tar, reterr);
}
