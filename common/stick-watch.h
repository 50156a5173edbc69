/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reports that a path on removable media may exist now: something was mounted on it or above it, or
 * the path or a directory above it was created. Nothing is polled. */

#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct StickWatch StickWatch;

/* 'on_changed' is called from the loop. The path is copied. 0 or -errno. */
int stick_watch_new(sd_event *event, const char *path, void (*on_changed)(void *userdata),
                    void *userdata, StickWatch **ret);
StickWatch *stick_watch_free(StickWatch *watch);
DEFINE_CLEANUP(StickWatch *, stick_watch_free)

/* While the path is absent, files are watched in addition to mounts. The path may have appeared
 * before the call. 0 or -errno. */
int stick_watch_set_absent(StickWatch *watch, bool is_absent);
