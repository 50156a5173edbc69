/* SPDX-License-Identifier: Apache-2.0 */
/* The files come from an image, so their names, number and depth are untrusted. Both trees are
 * walked using descriptors, one name at a time, and no link is followed. */

#include "agent/shim/image-content.h"

#include "common/cleanup.h"
#include "common/file-copy.h"
#include "common/file.h"
#include "common/utf8.h"

#include <fcntl.h>
#include <limits.h>
#include <search.h>

enum {
        DEPTH_MAX = 256,                    /* the same limit as for layers; each level takes three
                                             * descriptors */
        LINKS_BYTES_MAX = 64 * 1024 * 1024, /* memory for files with several names */
};

/* A file with several names: the path of its copy below the new directory. */
typedef struct CopiedInode {
        dev_t device;
        ino_t inode;
        char path[]; /* empty in a search key */
} CopiedInode;

typedef struct ContentCopy {
        int top_fd;   /* the new directory */
        void *inodes; /* of tsearch(3) */
        size_t inode_bytes;
        char path[PATH_MAX]; /* path of the entry that is being copied */
        Error *reterr;
} ContentCopy;

static void content_copy_done(ContentCopy *copy) {
        tdestroy(copy->inodes, free);
}

/* Untrusted names may contain any bytes. */
static int copy_failed(const ContentCopy *copy, int r) {
        cleanup_free char *path = strdup(copy->path);

        if (!path)
                return -ENOMEM;
        utf8_sanitize(path);
        return error_setf(copy->reterr, -r, "cannot copy '%s': %s", path, strerror(-r));
}

static int compare_inodes(const void *a, const void *b) {
        const CopiedInode *x = a, *y = b;

        if (x->device != y->device)
                return x->device < y->device ? -1 : 1;
        return x->inode == y->inode ? 0 : x->inode < y->inode ? -1 : 1;
}

static const CopiedInode *find_copied_inode(const ContentCopy *copy, const struct stat *st) {
        const CopiedInode key = { .device = st->st_dev, .inode = st->st_ino };
        void *node = tfind(&key, &copy->inodes, compare_inodes);

        return node ? *(CopiedInode **) node : NULL;
}

/* If the other names of a file were forgotten, the file would be copied once for each of them, and
 * a small image could fill the disk. */
static int remember_copied_inode(ContentCopy *copy, const struct stat *st) {
        size_t length = strlen(copy->path) + 1, size = sizeof(CopiedInode) + length;
        CopiedInode *inode;

        copy->inode_bytes += size;
        if (copy->inode_bytes > LINKS_BYTES_MAX)
                return -EMLINK;
        inode = malloc(size);
        if (!inode)
                return -ENOMEM;
        inode->device = st->st_dev;
        inode->inode = st->st_ino;
        memcpy(inode->path, copy->path, length);
        if (!tsearch(inode, &copy->inodes, compare_inodes)) {
                free(inode);
                return -ENOMEM;
        }
        return 0;
}

/* Extended attributes follow the owner, because changing the owner removes capabilities; times are
 * last. */
static int copy_metadata(int from_fd, int to_fd, const struct stat *st) {
        FileMetadata metadata = file_metadata_of(st);
        int r = file_metadata_apply(to_fd, &metadata);

        if (r >= 0)
                r = xattr_copy(from_fd, to_fd);
        return r < 0 ? r : file_metadata_apply_times(to_fd, &metadata);
}

static int copy_regular_file(int from_dir, int to_dir, const char *name, const struct stat *st) {
        cleanup_close int from =
                openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        cleanup_close int to = -EBADF;
        int r;

        if (from < 0)
                return -errno;
        to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (to < 0)
                return -errno;
        r = file_copy_content(from, to, st->st_size);
        return r < 0 ? r : copy_metadata(from, to, st);
}

static int copy_link(int from_dir, int to_dir, const char *name, const struct stat *st) {
        FileMetadata metadata = file_metadata_of(st);
        char target[PATH_MAX];
        ssize_t n = readlinkat(from_dir, name, target, sizeof(target) - 1);

        if (n < 0)
                return -errno;
        target[n] = '\0';
        if (symlinkat(target, to_dir, name) < 0)
                return -errno;
        return file_metadata_apply_at(to_dir, name, &metadata);
}

static int copy_fifo(int to_dir, const char *name, const struct stat *st) {
        FileMetadata metadata = file_metadata_of(st);

        if (mkfifoat(to_dir, name, 0600) < 0)
                return -errno;
        /* The owner is changed first, because that clears bits of the mode. */
        if (fchownat(to_dir, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
            fchmodat(to_dir, name, metadata.mode, 0) < 0)
                return -errno;
        return file_metadata_apply_at(to_dir, name, &metadata);
}

/* A file with one name, or the first name of several. */
static int copy_image_file(ContentCopy *copy, int from_dir, int to_dir, const char *name,
                           const struct stat *st) {
        int r = 0;

        if (S_ISREG(st->st_mode))
                r = copy_regular_file(from_dir, to_dir, name, st);
        else if (S_ISLNK(st->st_mode))
                r = copy_link(from_dir, to_dir, name, st);
        else if (S_ISFIFO(st->st_mode))
                r = copy_fifo(to_dir, name, st);
        else
                return 0; /* a layer cannot contain others */
        return r >= 0 && st->st_nlink > 1 ? remember_copied_inode(copy, st) : r;
}

static int copy_file_or_name(ContentCopy *copy, int from_dir, int to_dir, const char *name,
                             const struct stat *st) {
        const CopiedInode *first = st->st_nlink > 1 ? find_copied_inode(copy, st) : NULL;

        if (!first)
                return copy_image_file(copy, from_dir, to_dir, name, st);
        return linkat(copy->top_fd, first->path, to_dir, name, 0) < 0 ? -errno : 0;
}

static int copy_directory(ContentCopy *copy, int from_fd, int to_fd, unsigned depth);

static int copy_subdirectory(ContentCopy *copy, int from_dir, int to_dir, const char *name,
                             unsigned depth) {
        cleanup_close int from = -EBADF, to = -EBADF;

        if (depth >= DEPTH_MAX)
                return copy_failed(copy, -ELOOP);
        from = openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (from < 0 || mkdirat(to_dir, name, 0700) < 0)
                return copy_failed(copy, -errno);
        to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return to < 0 ? copy_failed(copy, -errno) : copy_directory(copy, from, to, depth + 1);
}

static int copy_entry(ContentCopy *copy, int from_dir, int to_dir, const char *name,
                      unsigned depth) {
        struct stat st;
        int r;

        if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return copy_failed(copy, -errno);
        if (S_ISDIR(st.st_mode))
                return copy_subdirectory(copy, from_dir, to_dir, name, depth);
        r = copy_file_or_name(copy, from_dir, to_dir, name, &st);
        return r < 0 ? copy_failed(copy, r) : 0;
}

/* Keeps the path of the entry for messages, and for further names of its file. */
static int copy_named_entry(ContentCopy *copy, int from_dir, int to_dir, const char *name,
                            unsigned depth) {
        size_t length = strlen(copy->path);
        int n = snprintf(copy->path + length, sizeof(copy->path) - length, "%s%s",
                         length > 0 ? "/" : "", name);
        int r = (size_t) n < sizeof(copy->path) - length
                        ? copy_entry(copy, from_dir, to_dir, name, depth)
                        : copy_failed(copy, -ENAMETOOLONG);

        copy->path[length] = '\0';
        return r;
}

/* The entries, followed by the directory's own mode and times. */
static int copy_directory(ContentCopy *copy, int from_fd, int to_fd, unsigned depth) {
        int list_fd = openat(from_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        cleanup_closedir DIR *dir = list_fd < 0 ? NULL : fdopendir(list_fd);
        const struct dirent *entry;
        struct stat st;
        int r;

        if (!dir) {
                r = copy_failed(copy, -errno);
                close_fd(list_fd);
                return r;
        }
        while ((r = read_directory_entry(dir, &entry)) > 0) {
                r = copy_named_entry(copy, from_fd, to_fd, entry->d_name, depth);
                if (r < 0)
                        return r;
        }
        if (r >= 0)
                r = fstat(from_fd, &st) < 0 ? -errno : copy_metadata(from_fd, to_fd, &st);
        return r < 0 ? copy_failed(copy, r) : 0;
}

/* An earlier attempt to start the container may have left part of the copy. */
static int make_empty_directory(const char *path) {
        cleanup_close int parent_fd = -EBADF;
        const char *name;
        int r, fd;

        parent_fd = open_parent_no_symlinks(path, &name);
        if (parent_fd < 0)
                return parent_fd;
        r = remove_tree_at(parent_fd, name);
        if (r < 0)
                return r;
        if (mkdirat(parent_fd, name, 0700) < 0)
                return -errno;
        fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static int set_owner_of_root(int fd, int root_fd) {
        struct stat st;

        if (fstat(root_fd, &st) < 0 || fchown(fd, st.st_uid, st.st_gid) < 0)
                return -errno;
        return fchmod(fd, 0755) < 0 ? -errno : 0;
}

static bool is_same_directory(int a, int b) {
        struct stat left, right;

        return fstat(a, &left) == 0 && fstat(b, &right) == 0 && left.st_dev == right.st_dev &&
               left.st_ino == right.st_ino;
}

static int copy_content(int root_fd, const char *path, int to_fd, Error *reterr) {
        cleanup_with(content_copy_done) ContentCopy copy = { .top_fd = to_fd, .reterr = reterr };
        cleanup_close int from_fd = open_in_root(root_fd, path, O_RDONLY | O_DIRECTORY);

        if (from_fd == -ENOENT)
                return set_owner_of_root(to_fd, root_fd);
        if (from_fd == -ENOTDIR)
                return error_setf(reterr, ENOTDIR, "the image has a file there");
        if (from_fd < 0)
                return error_setf(reterr, -from_fd, "%s", strerror(-from_fd));
        /* A volume at this path would cover /proc and all other mounts. */
        if (is_same_directory(from_fd, root_fd))
                return error_setf(reterr, EINVAL, "it is a link to the root of the image");
        return copy_directory(&copy, from_fd, to_fd, 0);
}

int image_content_copy(const char *rootfs, const char *path, const char *directory, Error *reterr) {
        cleanup_close int root_fd = open_no_symlinks(AT_FDCWD, rootfs, O_PATH | O_DIRECTORY, 0);
        cleanup_close int to_fd = root_fd < 0 ? root_fd : make_empty_directory(directory);
        int r = to_fd;

        if (r < 0)
                return error_setf(reterr, -r,
                                  "cannot make '%s' for the volume '%s' of the image: %s",
                                  directory, path, strerror(-r));
        r = copy_content(root_fd, path, to_fd, reterr);
        return r < 0 ? error_prefixf(reterr, r, "the volume '%s' of the image", path) : 0;
}
