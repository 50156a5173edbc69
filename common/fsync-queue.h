/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes small files that were written by rename survive a power cut: a child syncs them and their
 * directory, so that the writer does not wait for the disk. Only one child runs at a time; files
 * that are marked in the meantime are synced afterwards. */

#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct FsyncQueue FsyncQueue;

/* The directories are below 'base', and the files in them have some of 'names' (NULL-terminated;
 * static). 0 or -errno. */
int fsync_queue_new(sd_event *event, const char *base, const char *const *names, FsyncQueue **ret);

/* Keeps the last synced version of this file as "<name>.synced", a hard link: after a power cut,
 * neither the bytes of a new version nor the name of the old one may exist. checksummed_load_at()
 * reads it. 'name' is one of the names. */
void fsync_queue_keep_synced(FsyncQueue *sync, const char *name);

/* Marked files are not synced, unless their child has already started. NULL is allowed. */
FsyncQueue *fsync_queue_free(FsyncQueue *sync);
DEFINE_CLEANUP(FsyncQueue *, fsync_queue_free)

/* Removes a directory with its contents, after the end of a child that may be creating links in it.
 * An error is logged. Another process that removes such a directory must expect that a new name
 * appears in it (-ENOTEMPTY). */
void fsync_queue_remove(FsyncQueue *sync, const char *directory);

/* Marks a directory that was written to. Does nothing if it no longer exists when it is to be
 * synced. A failed sync is logged once until it succeeds. NULL is allowed. */
void fsync_queue_add(FsyncQueue *sync, const char *directory);

/* The result of the last child: 0 or -errno. */
int fsync_queue_last_error(const FsyncQueue *sync);
