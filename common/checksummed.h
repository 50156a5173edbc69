/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Text files with a checksum: the last line is the SHA-256 of everything before it. For records
 * that one program writes and a later one reads, possibly after a power cut. */

#include "common/macros.h"

#include <sys/types.h>

/* Appends the checksum to 'text'. The caller frees the result; NULL: out of memory. */
char *checksummed_format(const char *text, size_t *ret_length);

/* Reads a checksummed file of at most 'max_bytes'. 0 with the text without its checksum, which the
 * caller frees; -EBADMSG if it is damaged; or an error of read_file_at(). */
int checksummed_read_at(int dir_fd, const char *path, size_t max_bytes, char **ret_text);

/* "<name>.synced": the last version of a file that an FsyncQueue has synced. */
#define CHECKSUMMED_SYNCED_SUFFIX ".synced"

/* The same, for a program that continues without damaged data. 1 with the text. A damaged file is
 * set aside; if the version that was last synced exists, returns 1 with its text. 0 if the file
 * does not exist, or if it is damaged or not a regular file, which is logged ("<what> is damaged,
 * setting it aside; <consequence>"); -errno if it cannot be read, perhaps temporarily. */
int checksummed_try_load_at(int dir_fd, const char *name, size_t max_bytes, const char *what,
                            const char *consequence, char **ret_text);

/* The same, for a program that also continues without unreadable data: the error is logged, and the
 * result is 0. Otherwise returns 1, 0 or -ENOMEM. */
int checksummed_load_at(int dir_fd, const char *name, size_t max_bytes, const char *what,
                        const char *consequence, char **ret_text);

/* Writes to a temporary file and renames it to 'name'. Not synced: a truncated file fails its
 * checksum. 0 or -errno. */
int checksummed_write_at(int dir_fd, const char *name, const char *text, mode_t mode);

/* Renames a damaged file to "<name>.damaged", so that it can be examined. */
void checksummed_set_aside_at(int dir_fd, const char *name);
