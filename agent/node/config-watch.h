/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Notifies when the configuration file may have changed: at SIGHUP, and when inotify reports it.
 * It does not read the file. */

#include <systemd/sd-event.h>

typedef struct ConfigWatch ConfigWatch;

/* 'on_changed' is called from the event loop. Where the directory cannot be watched, only SIGHUP
 * has an effect. 0 or -errno. */
int config_watch_new(sd_event *event, const char *path, void (*on_changed)(void *userdata),
                     void *userdata, ConfigWatch **ret);
ConfigWatch *config_watch_free(ConfigWatch *watch);
