/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Says when one of some files may be another: written, replaced, or exchanged through a link, in
 * its own directory or in that of the file that it links to. What they hold then is read by whoever
 * is told. */

#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct FileWatch FileWatch;

/* 'on_changed' is called from the loop, once for all that happened in a turn. 0 or -errno. */
int file_watch_new(sd_event *event, void (*on_changed)(void *userdata), void *userdata,
                   FileWatch **ret);
FileWatch *file_watch_free(FileWatch *watch);
DEFINE_CLEANUP(FileWatch *, file_watch_free)

/* Watches these from now on, and no others; NULL among them are skipped. The files need not be
 * there, but where a directory is not, nothing is heard of it. 0, or the first -errno after having
 * watched what can be, -ENOENT not counted. */
int file_watch_set(FileWatch *watch, const char *const *paths, size_t n);
