/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Small files that were written by rename, and are to survive a power cut: a child syncs them with
 * their directory, so that whoever wrote them need not wait for a disk. One child at a time; what
 * is marked meanwhile has its turn after it. */

#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct DirSync DirSync;

/* The directories are below 'base', the files in each have some of 'names' (NULL ends them;
 * static). 0 or -errno. */
int dir_sync_new(sd_event *event, const char *base, const char *const *names, DirSync **ret);

/* Those that are marked are not synced any more, unless their child has begun. NULL is fine. */
DirSync *dir_sync_free(DirSync *sync);
DEFINE_CLEANUP(DirSync *, dir_sync_free)

/* Something in the directory was written. One that is gone by then needs nothing. What cannot be
 * synced is said in the log, once for as long as it is so. NULL is fine. */
void dir_sync_mark(DirSync *sync, const char *directory);
