/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reports that mounts on a path, or on a directory above it, have changed: a USB stick was inserted
 * or removed. The kernel sends notifications; nothing is polled, and the file system is not
 * accessed. */

#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct MountWatch MountWatch;

/* 'on_changed' is called from the loop. 0 or -errno. */
int mount_watch_new(sd_event *event, const char *path, void (*on_changed)(void *userdata),
                    void *userdata, MountWatch **ret);
MountWatch *mount_watch_free(MountWatch *watch);
DEFINE_CLEANUP(MountWatch *, mount_watch_free)

/* The lines of a mount table in the format of /proc/self/mountinfo that are mounted on the path or
 * above it. The caller frees them; NULL: out of memory. Pure. */
char *mount_watch_filter(const char *table, const char *path);
