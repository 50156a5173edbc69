/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The devices of the kernel that have a node in /dev, now and as they appear and disappear. Events
 * come from udev if it runs, otherwise from the kernel itself. */

#include "agent/node-devices/device-facts.h"

#include <systemd/sd-event.h>

typedef struct DeviceWatch DeviceWatch;

typedef struct DeviceWatchConfig {
        sd_event *event;
        char *const *subsystems; /* NULL: all; borrowed */
        /* A device is present, or has changed. 'facts' are taken. */
        void (*on_present)(DeviceFacts *facts, void *userdata);
        void (*on_gone)(const char *syspath, void *userdata);
        /* All present devices have been reported; the others are gone. */
        void (*on_listed)(void *userdata);
        void *userdata;
} DeviceWatchConfig;

/* Reports all devices before it returns. 0 or -errno. */
int device_watch_new(const DeviceWatchConfig *config, DeviceWatch **ret);
DeviceWatch *device_watch_free(DeviceWatch *watch);
DEFINE_CLEANUP(DeviceWatch *, device_watch_free)
