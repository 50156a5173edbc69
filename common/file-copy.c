/* SPDX-License-Identifier: Apache-2.0 */
#include "common/file-copy.h"

#include "common/cleanup.h"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
        LIST_BYTES = 64 * 1024, /* the kernel's own limits */
        VALUE_BYTES = 64 * 1024
};

FileMetadata file_metadata_of(const struct stat *st) {
        return (FileMetadata){
                .uid = st->st_uid,
                .gid = st->st_gid,
                .mode = st->st_mode & 07777,
                .times = { st->st_atim, st->st_mtim },
        };
}

int file_metadata_apply(int fd, const FileMetadata *metadata) {
        if (fchown(fd, metadata->uid, metadata->gid) < 0)
                return -errno;
        return fchmod(fd, metadata->mode) < 0 ? -errno : 0;
}

int file_metadata_apply_times(int fd, const FileMetadata *metadata) {
        return futimens(fd, metadata->times) < 0 ? -errno : 0;
}

int file_metadata_apply_at(int dir_fd, const char *name, const FileMetadata *metadata) {
        if (fchownat(dir_fd, name, metadata->uid, metadata->gid, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        return utimensat(dir_fd, name, metadata->times, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static bool starts_with(const char *text, const char *prefix) {
        return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool xattr_is_allowed(const char *name) {
        if (starts_with(name, "user."))
                return !starts_with(name, "user.overlay.");
        return streq(name, "security.capability") || streq(name, "system.posix_acl_access") ||
               streq(name, "system.posix_acl_default");
}

int xattr_apply(int fd, const char *name, const void *value, size_t size) {
        if (fsetxattr(fd, name, value, size, 0) >= 0)
                return 0;
        if (errno == EOPNOTSUPP && !streq(name, "security.capability"))
                return 0;
        return -errno;
}

static int copy_one_xattr(int from_fd, int to_fd, const char *name, char *value) {
        ssize_t n = fgetxattr(from_fd, name, value, VALUE_BYTES);

        return n < 0 ? -errno : xattr_apply(to_fd, name, value, (size_t) n);
}

int xattr_copy(int from_fd, int to_fd) {
        cleanup_free char *names = malloc(LIST_BYTES + VALUE_BYTES);
        ssize_t length;

        if (!names)
                return -ENOMEM;
        length = flistxattr(from_fd, names, LIST_BYTES);
        if (length < 0)
                return errno == EOPNOTSUPP ? 0 : -errno;
        for (const char *name = names; name < names + length; name += strlen(name) + 1) {
                int r = xattr_is_allowed(name)
                                ? copy_one_xattr(from_fd, to_fd, name, names + LIST_BYTES)
                                : 0;
                if (r < 0)
                        return r;
        }
        return 0;
}

static int copy_range(int from, int to, off_t start, off_t end) {
        while (start < end) {
                char buffer[64 * 1024];
                size_t want = MIN((size_t) (end - start), sizeof(buffer));
                ssize_t n = pread(from, buffer, want, start), written = 0;

                if (n > 0)
                        written = pwrite(to, buffer, (size_t) n, start);
                if (n < 0 || written < 0)
                        return -errno;
                if (n == 0)
                        break;
                start += written;
        }
        return 0;
}

int file_copy_content(int from, int to, off_t size) {
        off_t end = 0;

        for (;;) {
                off_t start = lseek(from, end, SEEK_DATA);
                int r;

                if (start < 0 && errno == ENXIO)
                        return ftruncate(to, size) < 0 ? -errno : 0;
                end = start < 0 ? start : lseek(from, start, SEEK_HOLE);
                if (end < 0)
                        return -errno;
                r = copy_range(from, to, start, end);
                if (r < 0)
                        return r;
        }
}
