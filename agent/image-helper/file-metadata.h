/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Owner, mode, times and extended attributes of what a layer holds, set by descriptor. */

#include "common/error.h"

#include <sys/stat.h>

typedef struct FileMetadata {
        uid_t uid;
        gid_t gid;
        mode_t mode;              /* the 07777 of it */
        struct timespec times[2]; /* accessed, modified */
} FileMetadata;

FileMetadata file_metadata_of(const struct stat *st);

/* On an open regular file or directory: owner, then mode, which a change of owner would cut. 0 or
 * -errno. */
int file_metadata_apply(int fd, const FileMetadata *metadata);

/* The times alone, after everything else that touches the file. */
int file_metadata_apply_times(int fd, const FileMetadata *metadata);

/* On a symbolic link or a FIFO that is not opened. */
int file_metadata_apply_at(int dir_fd, const char *name, const FileMetadata *metadata);

/* Whether a layer may bring this attribute. What means something to overlayfs may not come from a
 * stranger, and of "security." only file capabilities are the image's own business. */
bool xattr_is_allowed(const char *name);

/* Sets one attribute that is kept. A file system without such attributes loses all but file
 * capabilities in silence, as container engines do. 0 or -errno. */
int xattr_apply(int fd, const char *name, const void *value, size_t size);

/* Copies those that are kept. 0 or -errno. */
int xattr_copy(int from_fd, int to_fd);
