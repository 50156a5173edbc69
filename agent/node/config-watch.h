/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Says when the file of the configuration may be another: at SIGHUP, and when something happens to
 * it in its directory. What it holds then is read by whoever is told. */

#include <systemd/sd-event.h>

typedef struct ConfigWatch ConfigWatch;

/* 'on_changed' is called from the loop. Where the directory cannot be watched there is SIGHUP. 0 or
 * -errno. */
int config_watch_new(sd_event *event, const char *path, void (*on_changed)(void *userdata),
                     void *userdata, ConfigWatch **ret);
ConfigWatch *config_watch_free(ConfigWatch *watch);
