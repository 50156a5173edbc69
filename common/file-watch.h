/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reports that one of several files may have changed: written, replaced, or exchanged through a
 * link, in its own directory or in that of the link's target. The callback reads the files. */

#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct FileWatch FileWatch;

/* 'on_changed' is called from the loop, once for all events of a turn. 0 or -errno. */
int file_watch_new(sd_event *event, void (*on_changed)(void *userdata), void *userdata,
                   FileWatch **ret);
FileWatch *file_watch_free(FileWatch *watch);
DEFINE_CLEANUP(FileWatch *, file_watch_free)

/* Watches exactly these files from now on; NULL among them are skipped. The files need not exist,
 * but a missing directory is not watched. 0, or the first -errno other than -ENOENT, after all
 * possible watches have been added. */
int file_watch_set(FileWatch *watch, const char *const *paths, size_t n);
