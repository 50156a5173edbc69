/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes tars: plain ustar, without any data of this machine. All: 0 or -errno. */

#include "common/macros.h"

#include <stdint.h>

/* The header of a regular file; -EFBIG beyond the 8 GiB of ustar. Then its bytes, then the
 * padding. */
int tar_write_header(int fd, const char *name, uint64_t size);
int tar_write_padding(int fd, uint64_t size);

/* All three. */
int tar_write_file(int fd, const char *name, const void *data, size_t length);

/* All three, with 'size' bytes read from 'from'; -EBADMSG if it has fewer. */
int tar_write_from(int fd, const char *name, int from, uint64_t size);

/* The end of the tar. */
int tar_write_end(int fd);
