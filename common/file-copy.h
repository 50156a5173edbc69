/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Copies the properties of a file of an image, by descriptor: content, owner, mode, times and
 * extended attributes. */

#include "common/error.h"

#include <sys/stat.h>

typedef struct FileMetadata {
        uid_t uid;
        gid_t gid;
        mode_t mode;              /* permission bits, 07777 */
        struct timespec times[2]; /* access and modification */
} FileMetadata;

FileMetadata file_metadata_of(const struct stat *st);

/* For an open regular file or directory: sets the owner, then the mode, because changing the owner
 * resets the mode. 0 or -errno. */
int file_metadata_apply(int fd, const FileMetadata *metadata);

/* Sets only the times; to be called after all other changes of the file. */
int file_metadata_apply_times(int fd, const FileMetadata *metadata);

/* For a symbolic link or a FIFO that is not opened. */
int file_metadata_apply_at(int dir_fd, const char *name, const FileMetadata *metadata);

/* Whether a layer may set this attribute: file capabilities, POSIX ACLs, and attributes of "user."
 * except those of overlayfs, because layers are untrusted. */
bool xattr_is_allowed(const char *name);

/* Sets one permitted attribute. On a file system without extended attributes, all except file
 * capabilities are silently dropped, as in container engines. 0 or -errno. */
int xattr_apply(int fd, const char *name, const void *value, size_t size);

/* Copies the permitted attributes. 0 or -errno. */
int xattr_copy(int from_fd, int to_fd);

/* Copies 'size' bytes of a regular file to a new one. Holes are preserved: a file of a hundred
 * gigabytes may occupy a kilobyte in an archive, and must not occupy more on disk, however often it
 * is copied. 0 or -errno. */
int file_copy_content(int from_fd, int to_fd, off_t size);
