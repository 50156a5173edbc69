/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files and directories as a tar, with libarchive: the data that cp sends to a container or
 * receives from it. Also a compressed tar of texts. */

#include "common/error.h"

/* Writes the file or tree at 'path' as a tar, in which it has the name 'name'. Links are preserved,
 * owners are not. 0, or -errno with a message. */
int tar_pack(const char *path, const char *name, int fd, Error *reterr);

/* Creates 'target' in the working directory from a tar in which all entries are 'name' or below it.
 * The tar is untrusted: nothing is written outside of 'target', not even through links in the tar,
 * and devices, pipes and set-user-ID bits are omitted. 0, or -errno with a message. */
int tar_unpack(int fd, const char *name, const char *target, Error *reterr);

/* A gzip-compressed tar of files that only their owner can read. All functions return 0, or -errno
 * with a message. */
typedef struct TarGz TarGz;

int tar_gz_new(int fd, TarGz **ret, Error *reterr);
int tar_gz_add(TarGz *tar, const char *name, const char *data, size_t length, Error *reterr);
int tar_gz_finish(TarGz *tar, Error *reterr);
TarGz *tar_gz_free(TarGz *tar);
