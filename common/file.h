/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files and directories by descriptor: bounded reads, atomic writes, walks that follow no links. */

#include "common/macros.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Opens 'path' below 'dir_fd' so that neither "..", absolute links nor magic links lead out of it
 * (openat2 with RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS). O_CLOEXEC is added. Returns a descriptor
 * or -errno. */
int open_beneath(int dir_fd, const char *path, int flags, mode_t mode);

/* Opens 'path' like a process whose root is 'root_fd': absolute links and ".." cannot leave that
 * root. Crosses no mounts. O_CLOEXEC is added. Returns a descriptor or -errno. */
int open_in_root(int root_fd, const char *path, int flags);

/* The same, but crosses mounts: for the root of a container in whose mount namespace this process
 * is. */
int open_in_container(int root_fd, const char *path, int flags);

/* Opens 'path' without following a symbolic link in any component: for files in a directory to
 * which a container may write, such as the log directory. 'path' is absolute with AT_FDCWD; below a
 * descriptor, it cannot leave the directory either. O_CLOEXEC is added. Returns a descriptor or
 * -errno: -ELOOP at a link. */
int open_no_symlinks(int dir_fd, const char *path, int flags, mode_t mode);

/* Likewise, opens the directory that contains the last component of an absolute path; '*ret_name'
 * is that component, within 'path'. */
int open_parent_no_symlinks(const char *path, const char **ret_name);

/* Likewise, for reading the entries of a directory. Returns NULL and sets errno on failure. */
DIR *opendir_no_symlinks(const char *path);

/* Creates the missing parent directories of 'path' below 'dir_fd', and 'path' itself (a directory
 * or an empty file); follows no links. New ones get exactly 'mode'; parents also get search
 * permission. Opens it with O_PATH. Returns a descriptor or -errno. */
int make_path_at(int dir_fd, const char *path, bool directory, mode_t mode);

/* Creates a directory and its parents like make_path_at(), by its absolute path. 0 or -errno:
 * -ELOOP or -ENOTDIR at a link. */
int make_directory_no_symlinks(const char *path, mode_t mode);

/* Creates 'path' below 'dir_fd' (which may be AT_FDCWD) with all its parents; existing ones are
 * unchanged. New ones get exactly 'mode', regardless of the umask. 0 or -errno. */
int mkdir_parents_at(int dir_fd, const char *path, mode_t mode);

/* Like mkdir_parents_at(), but opens the last directory for reading. Returns a descriptor or
 * -errno. */
int open_directory_at(int dir_fd, const char *path, mode_t mode);

/* Reads a whole regular file of at most 'max_bytes' into memory that the caller frees, and that
 * ends with an additional NUL. Opening it does not block; -EINVAL (or -EISDIR) if it is not a
 * regular file, -EFBIG if it is longer. */
int read_file_at(int dir_fd, const char *path, size_t max_bytes, char **ret_data,
                 size_t *ret_length);

/* Whether this error, or -EBADMSG from the file's parser, means that the file is damaged, so that
 * it can be set aside and ignored. All other errors, such as -ENOMEM, -EMFILE or -EIO, may be
 * temporary: they do not depend on the content of the file. */
bool is_file_damage(int r);

/* The same for data that was read and then parsed: 'text' is NULL if reading failed. A parser fails
 * either because memory is exhausted or because of the content. */
bool is_content_damage(const char *text, int r);

/* Like read_file_at(), for files in /proc and /sys, which have no size. */
int read_stream(int fd, size_t max_bytes, char **ret_data, size_t *ret_length);

/* Writes to a temporary file and renames it to 'name', so that a reader sees either the old or the
 * new bytes. 0, -errno. */
int write_file_atomic_at(int dir_fd, const char *name, const void *data, size_t length,
                         mode_t mode);

/* Writes a value to an existing file, for example in /proc or /sys: one open, one write. 0 or
 * -errno. */
int write_value_at(int dir_fd, const char *path, const char *value);

/* Writes everything, handling EINTR and short writes. 0 or -errno. */
int write_all(int fd, const void *data, size_t length);

/* Likewise at a position of the file. 0 or -errno. */
int pwrite_all(int fd, const void *data, size_t length, uint64_t position);

/* Copies a file from its position to its end. 0 or -errno. */
int copy_to_end(int from, int to);

/* If permitted, keeps the access time of the file or directory unchanged when it is read, so that
 * reading writes nothing to the disk. Resets the flags of 'fd' that F_SETFL sets. */
void keep_access_time(int fd);

/* The next entry except "." and "..", borrowed until the next one is read. 1; 0 at the end; -errno:
 * there are more entries. */
int read_directory_entry(DIR *dir, const struct dirent **ret);

/* Like unlinkat(2) for a file; a missing file counts as removed. May be called in a forked child. 0
 * or -errno. */
int unlink_if_present_at(int dir_fd, const char *path);

/* Removes 'path' (absolute, or below 'dir_fd') with its contents. Follows no links in any
 * component, and never leaves the file system of the directory: a mount inside it results in
 * -EXDEV. A missing path counts as removed. 0 or the first -errno, after removing as much as
 * possible; -ELOOP if a parent is a link. */
int remove_tree_at(int dir_fd, const char *path);

/* The same for the content of the directory 'path', which itself stays; a link in any component is
 * -ELOOP. */
int remove_contents_at(int dir_fd, const char *path);

/* Closes an open_memstream() stream and returns its text, which is then '*text'; or NULL, with
 * nothing allocated, if memory was exhausted. */
char *memstream_finish(FILE *stream, char **text);

/* "<a>/<b>", which the caller frees; NULL: out of memory. */
char *path_join(const char *a, const char *b);

/* The path, lexically made absolute and without ".", "..", repeated and trailing slashes: "a/../b/"
 * becomes "/b". The caller frees it; NULL: out of memory. */
char *path_clean(const char *path);

/* The part of a path below a directory, without a leading slash; NULL: it is not below. Both must
 * be in the form of path_clean(), and the directory must not be "/". */
const char *path_below(const char *path, const char *directory);
