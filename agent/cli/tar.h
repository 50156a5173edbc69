/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Files and directories as a tar, by libarchive: the data that cp sends to and receives from a
 * container. */

#include "common/error.h"

/* Writes the file or tree at 'path' as a tar in which it is called 'name'. Links are kept; owners
 * are not. 0, or -errno with a message. */
int tar_pack(const char *path, const char *name, int fd, Error *reterr);

/* Creates 'target' in the working directory from a tar whose entries are all 'name' or below it.
 * The tar is untrusted: nothing is written outside of 'target', not through its own links either,
 * and devices, pipes and set-user-ID bits are left out. 0, or -errno with a message. */
int tar_unpack(int fd, const char *name, const char *target, Error *reterr);
