/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Mounts an export of an NFS server with the distribution's mount.nfs(8), which negotiates the
 * version, and starts the lock daemon that NFS 3 needs. */

#include "common/error.h"

/* 'target' must exist; 'options' are separated by commas, or empty. The mount belongs to the
 * network namespace of 'network_fd'; -EBADF: the caller's. Blocks, at most as long as mount.nfs
 * does (two minutes unless its option 'retry' is given). 0, or -errno with a message. */
int nfs_mount(const char *source, const char *target, const char *options, int network_fd,
              Error *reterr);
