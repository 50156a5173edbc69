/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files and directories by descriptor: bounded reads, atomic writes, walks that cannot be led
 * astray. */

#include "common/macros.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Opens 'path' below 'dir_fd' so that neither "..", nor an absolute link, nor a magic link leads
 * out of it (openat2 with RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS). O_CLOEXEC is added. A
 * descriptor or -errno. */
int open_beneath(int dir_fd, const char *path, int flags, mode_t mode);

/* Makes 'path' below 'dir_fd' (which may be AT_FDCWD) with all its parents; what exists stays as it
 * is. The new ones get 'mode' exactly, whatever the umask says. 0 or -errno. */
int mkdir_parents_at(int dir_fd, const char *path, mode_t mode);

/* mkdir_parents_at(), and opens the last one O_PATH-free. A directory descriptor or -errno. */
int open_directory_at(int dir_fd, const char *path, mode_t mode);

/* Reads a whole regular file of at most 'max_bytes' into memory that the caller frees; a NUL
 * follows it that is not counted. Opened without blocking; what is no regular file gives -EINVAL
 * (or -EISDIR), what is longer -EFBIG. */
int read_file_at(int dir_fd, const char *path, size_t max_bytes, char **ret_data,
                 size_t *ret_length);

/* As read_file_at(), for files of the kernel's in /proc and /sys that have no size. */
int read_stream(int fd, size_t max_bytes, char **ret_data, size_t *ret_length);

/* Writes beside 'name' and renames over it, so that a reader sees the old bytes or the new ones. 0,
 * -errno. */
int write_file_atomic_at(int dir_fd, const char *name, const void *data, size_t length,
                         mode_t mode);

/* Writes a value into a file that is there, as in /proc and /sys: one open, one write. 0 or -errno.
 */
int write_value_at(int dir_fd, const char *path, const char *value);

/* All of it, through EINTR and short writes. 0 or -errno. */
int write_all(int fd, const void *data, size_t length);

/* Removes 'path' (absolute, or below 'dir_fd') with all that is in it. Follows no link from its
 * last component on, and never leaves the file system of its directory: a mount that someone left
 * inside stops it with -EXDEV. What is not there is removed. 0 or the first -errno, after having
 * removed what could be. */
int remove_tree_at(int dir_fd, const char *path);

/* Closes a stream of open_memstream() and gives its text, which is '*text' from then on; or NULL,
 * with nothing held, where memory ran out on the way. */
char *memstream_finish(FILE *stream, char **text);

/* "<a>/<b>" in memory that the caller frees, or NULL. */
char *path_join(const char *a, const char *b);
