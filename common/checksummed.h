/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Text files that can tell whether they are whole: the last line is the SHA-256 of all before it.
 * For records that are written by one program and read by a later one, across power cuts. */

#include "common/macros.h"

#include <sys/types.h>

/* Puts the seal after 'text'. Memory that the caller frees, or NULL. */
char *checksummed_format(const char *text, size_t *ret_length);

/* Reads a sealed file of at most 'max_bytes'. 0 with the text, without its seal, in memory that the
 * caller frees; -EBADMSG for one that is damaged; or what read_file_at() gives. */
int checksummed_read_at(int dir_fd, const char *path, size_t max_bytes, char **ret_text);

/* Writes beside 'name' and renames over it. Not synced: a cut file is known by its seal. 0 or
 * -errno. */
int checksummed_write_at(int dir_fd, const char *name, const char *text, mode_t mode);

/* Renames what is damaged to "<name>.damaged", so that it can be looked at. */
void checksummed_set_aside_at(int dir_fd, const char *name);
