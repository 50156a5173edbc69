/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Mounts an export of an NFS server by mount.nfs(8), the tool of the distribution: it negotiates
 * the version, and starts the daemon of locks that NFS 3 needs. */

#include "common/error.h"

/* 'target' exists; 'options' have commas, or are empty. The mount belongs to the network namespace
 * of 'network_fd', -EBADF: to that of the caller. Waits, at most as long as mount.nfs does (two
 * minutes unless its option 'retry' is given). 0, or -errno with a message. */
int nfs_mount(const char *source, const char *target, const char *options, int network_fd,
              Error *reterr);
