/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Text files with a checksum: the last line is the SHA-256 of everything before it. For records
 * that are written by one program and read by a later one, across power cuts. */

#include "common/macros.h"

#include <sys/types.h>

/* Appends the checksum to 'text'. Memory that the caller frees, or NULL. */
char *checksummed_format(const char *text, size_t *ret_length);

/* Reads a checksummed file of at most 'max_bytes'. 0 with the text without its checksum, in memory
 * that the caller frees; -EBADMSG if it is damaged; or an error of read_file_at(). */
int checksummed_read_at(int dir_fd, const char *path, size_t max_bytes, char **ret_text);

/* "<name>.synced": the version of a file that an FsyncQueue synced last. */
#define CHECKSUMMED_SYNCED_SUFFIX ".synced"

/* The same for a program that continues without damaged data. A damaged file is set aside; if the
 * version that was synced last is kept, 1 with its text. 1 with the text; 0 if the file does not
 * exist, or if it is damaged or not a file, which is logged ("<what> is damaged, setting it aside;
 * <consequence>"); -errno if it cannot be read, perhaps temporarily. */
int checksummed_try_load_at(int dir_fd, const char *name, size_t max_bytes, const char *what,
                            const char *consequence, char **ret_text);

/* The same for a program that also continues without unreadable data: that is logged, and gives
 * 0. Otherwise 1, 0 or -ENOMEM. */
int checksummed_load_at(int dir_fd, const char *name, size_t max_bytes, const char *what,
                        const char *consequence, char **ret_text);

/* Writes next to 'name' and renames over it. Not synced: a truncated file fails its checksum. 0 or
 * -errno. */
int checksummed_write_at(int dir_fd, const char *name, const char *text, mode_t mode);

/* Renames a damaged file to "<name>.damaged", so that it can be examined. */
void checksummed_set_aside_at(int dir_fd, const char *name);
