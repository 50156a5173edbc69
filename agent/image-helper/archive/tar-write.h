/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes tars: plain ustar, without any data about this machine. All functions return 0 or
 * -errno. */

#include "common/macros.h"

#include <stdint.h>

/* Writes the header of a regular file; -EFBIG beyond ustar's 8 GiB. The bytes of the file and the
 * padding follow. */
int tar_write_header(int fd, const char *name, uint64_t size);
int tar_write_padding(int fd, uint64_t size);

/* Writes the header, 'data' and the padding. */
int tar_write_file(int fd, const char *name, const void *data, size_t length);

/* The same with 'size' bytes from 'from'; -EBADMSG if it has fewer. */
int tar_write_from(int fd, const char *name, int from, uint64_t size);

/* Writes the end of the tar. */
int tar_write_end(int fd);
