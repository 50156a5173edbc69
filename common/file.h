/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files and directories by descriptor: bounded reads, atomic writes, walks that follow no link. */

#include "common/macros.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Opens 'path' below 'dir_fd' so that neither "..", nor an absolute link, nor a magic link leads
 * out of it (openat2 with RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS). O_CLOEXEC is added. A
 * descriptor or -errno. */
int open_beneath(int dir_fd, const char *path, int flags, mode_t mode);

/* Opens 'path' as a process whose root is 'root_fd' would: absolute links and ".." lead to that
 * root at most. Crosses no mount. O_CLOEXEC is added. A descriptor or -errno. */
int open_in_root(int root_fd, const char *path, int flags);

/* Likewise, and crosses mounts: for the root of a container in whose mount namespace we are. */
int open_in_container(int root_fd, const char *path, int flags);

/* Opens 'path' and follows no symbolic link in any of its components: for files in a directory that
 * a container may write, such as that of the logs. 'path' is absolute with AT_FDCWD; below a
 * descriptor, nothing leads out of it either. O_CLOEXEC is added. A descriptor or -errno: -ELOOP at
 * a link. */
int open_no_symlinks(int dir_fd, const char *path, int flags, mode_t mode);

/* Likewise the directory in which the last component of an absolute path is; '*ret_name' is that
 * component, within 'path'. */
int open_parent_no_symlinks(const char *path, const char **ret_name);

/* Likewise for reading the entries of a directory. NULL and errno. */
DIR *opendir_no_symlinks(const char *path);

/* Creates the missing directories on the way to 'path' below 'dir_fd', and 'path' itself (a
 * directory or an empty file); follows no link. New ones get exactly 'mode', those on the way may
 * be passed, too. Opens it O_PATH. A descriptor or -errno. */
int make_path_at(int dir_fd, const char *path, bool directory, mode_t mode);

/* Creates a directory with its parents as make_path_at() does, by its absolute path. 0 or -errno:
 * -ELOOP or -ENOTDIR at a link. */
int make_directory_no_symlinks(const char *path, mode_t mode);

/* Creates 'path' below 'dir_fd' (which may be AT_FDCWD) with all its parents; existing ones are
 * unchanged. New ones get exactly 'mode', regardless of the umask. 0 or -errno. */
int mkdir_parents_at(int dir_fd, const char *path, mode_t mode);

/* Like mkdir_parents_at(), and opens the last directory for reading. A descriptor or -errno. */
int open_directory_at(int dir_fd, const char *path, mode_t mode);

/* Reads a whole regular file of at most 'max_bytes' into memory that the caller frees, with an
 * additional NUL. Opened without blocking; -EINVAL (or -EISDIR) if it is not a regular file, -EFBIG
 * if it is longer. */
int read_file_at(int dir_fd, const char *path, size_t max_bytes, char **ret_data,
                 size_t *ret_length);

/* Whether that error, or -EBADMSG of the file's parser, means that the file is at fault, so that it
 * may be set aside and ignored. All others, such as -ENOMEM, -EMFILE or -EIO, may be temporary:
 * they do not depend on the content of the file. */
bool is_file_damage(int r);

/* The same for data that was read and then parsed: 'text' is NULL if the reading failed. A parser
 * fails for lack of memory, or because of the content. */
bool is_content_damage(const char *text, int r);

/* Like read_file_at(), for files in /proc and /sys, which are without a size. */
int read_stream(int fd, size_t max_bytes, char **ret_data, size_t *ret_length);

/* Writes next to 'name' and renames over it, so that a reader sees either the old or the new bytes.
 * 0, -errno. */
int write_file_atomic_at(int dir_fd, const char *name, const void *data, size_t length,
                         mode_t mode);

/* Writes a value into an existing file, as in /proc and /sys: one open, one write. 0 or -errno. */
int write_value_at(int dir_fd, const char *path, const char *value);

/* Writes everything, through EINTR and short writes. 0 or -errno. */
int write_all(int fd, const void *data, size_t length);

/* Likewise at a position of the file. 0 or -errno. */
int pwrite_all(int fd, const void *data, size_t length, uint64_t position);

/* If it is permitted, the file or directory keeps its time of access when it is read, so that
 * reading writes nothing to the disk. 'fd' loses the flags that F_SETFL sets. */
void keep_access_time(int fd);

/* The next entry but "." and "..", borrowed until the next one is read. 1; 0 at the end; -errno:
 * there are more. */
int read_directory_entry(DIR *dir, const struct dirent **ret);

/* As unlinkat(2) of a file; one that is missing counts as removed. May be called in a forked child.
 * 0 or -errno. */
int unlink_if_present_at(int dir_fd, const char *path);

/* Removes 'path' (absolute, or below 'dir_fd') with its contents. Follows no link in any component,
 * and never leaves the file system of its directory: a mount inside stops it with -EXDEV. A missing
 * path counts as removed. 0 or the first -errno, after having removed as much as possible; -ELOOP
 * if a link is on the way to it. */
int remove_tree_at(int dir_fd, const char *path);

/* The same for the content of the directory 'path', which stays; a link in any component is
 * -ELOOP. */
int remove_contents_at(int dir_fd, const char *path);

/* Closes a stream of open_memstream() and returns its text, which is '*text' from then on; or NULL,
 * with nothing allocated, if memory ran out. */
char *memstream_finish(FILE *stream, char **text);

/* "<a>/<b>" in memory that the caller frees, or NULL. */
char *path_join(const char *a, const char *b);

/* The path as a text, absolute and without ".", "..", double and final slashes: "a/../b/" is "/b".
 * The caller frees it; NULL: out of memory. */
char *path_clean(const char *path);

/* The part of a path that is below a directory, without a slash in front; NULL: it is not below.
 * Both are as path_clean() returns them, and the directory is not "/". */
const char *path_below(const char *path, const char *directory);
