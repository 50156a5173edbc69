/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Small files that were written by rename, and are to survive a power cut: a child syncs them with
 * their directory, so that whoever wrote them need not wait for a disk. One child at a time; what
 * is marked meanwhile has its turn after it. */

#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct FsyncQueue FsyncQueue;

/* The directories are below 'base', the files in each have some of 'names' (NULL ends them;
 * static). 0 or -errno. */
int fsync_queue_new(sd_event *event, const char *base, const char *const *names, FsyncQueue **ret);

/* Those that are marked are not synced any more, unless their child has begun. NULL is fine. */
FsyncQueue *fsync_queue_free(FsyncQueue *sync);
DEFINE_CLEANUP(FsyncQueue *, fsync_queue_free)

/* Something in the directory was written. One that is gone by then needs nothing. What cannot be
 * synced is said in the log, once for as long as it is so. NULL is fine. */
void fsync_queue_add(FsyncQueue *sync, const char *directory);
