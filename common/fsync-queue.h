/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes small files that were written by rename survive a power cut: a child syncs them with their
 * directory, so that the writer does not wait for the disk. One child at a time; files that are
 * marked in the meantime are synced after it. */

#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct FsyncQueue FsyncQueue;

/* The directories are below 'base', the files in each have some of 'names' (NULL ends them;
 * static). 0 or -errno. */
int fsync_queue_new(sd_event *event, const char *base, const char *const *names, FsyncQueue **ret);

/* Keeps the version of this file that was synced last as "<name>.synced", a hard link: a power cut
 * may leave neither the bytes of a new version nor the name of the old one. checksummed_load_at()
 * reads it. 'name' is one of the names. */
void fsync_queue_keep_synced(FsyncQueue *sync, const char *name);

/* Marked files are not synced, unless their child has started. NULL is fine. */
FsyncQueue *fsync_queue_free(FsyncQueue *sync);
DEFINE_CLEANUP(FsyncQueue *, fsync_queue_free)

/* Removes a directory with its contents, after the child that may be linking names in it. An error
 * is logged. Another process that removes one has to expect a new name in it (-ENOTEMPTY). */
void fsync_queue_remove(FsyncQueue *sync, const char *directory);

/* Marks a directory that was written to. If it is gone by then, nothing is done. A failed sync is
 * logged, once until it succeeds. NULL is fine. */
void fsync_queue_add(FsyncQueue *sync, const char *directory);

/* How the last child ended: 0 or -errno. */
int fsync_queue_last_error(const FsyncQueue *sync);
