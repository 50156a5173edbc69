/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Notifies when the configuration (a file and a directory of drop-ins) may have changed: on SIGHUP,
 * and when inotify reports a change. It does not read the files. */

#include "agent/manifest/config-files.h"

#include <systemd/sd-event.h>

typedef struct ConfigWatch ConfigWatch;

/* 'on_changed' is called from the event loop. If a directory cannot be watched, only SIGHUP has an
 * effect. The files are borrowed. 0 or -errno. */
int config_watch_new(sd_event *event, const ConfigFiles *files, void (*on_changed)(void *userdata),
                     void *userdata, ConfigWatch **ret);
ConfigWatch *config_watch_free(ConfigWatch *watch);
DEFINE_CLEANUP(ConfigWatch *, config_watch_free)
