/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The devices of the kernel that have a node in /dev, now and as they come and go: by udev if it
 * runs, and by the kernel's own events if not. */

#include "agent/node-devices/device-facts.h"

#include <systemd/sd-event.h>

typedef struct DeviceWatch DeviceWatch;

typedef struct DeviceWatchConfig {
        sd_event *event;
        char *const *subsystems; /* NULL: all; borrowed */
        /* A device is there, or has changed. 'facts' are taken. */
        void (*on_present)(DeviceFacts *facts, void *userdata);
        void (*on_gone)(const char *syspath, void *userdata);
        /* All devices that are there have been reported; those that were not are gone. */
        void (*on_listed)(void *userdata);
        void *userdata;
} DeviceWatchConfig;

/* Reports all devices before it returns. 0 or -errno. */
int device_watch_new(const DeviceWatchConfig *config, DeviceWatch **ret);
DeviceWatch *device_watch_free(DeviceWatch *watch);
DEFINE_CLEANUP(DeviceWatch *, device_watch_free)
