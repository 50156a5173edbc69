/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A device of the kernel that has a node in /dev, and the rules of the configuration. Pure. */

#include "agent/model/config.h"

typedef struct DeviceFacts { /* texts are NULL if they are not known */
        char *syspath;
        char *subsystem; /* "tty" */
        char *sysname;   /* "ttyUSB0" */
        char *node;      /* "/dev/ttyUSB0" */
        char **links;    /* of udev: "/dev/serial/by-id/…" */
        char *vendor;    /* of USB and PCI, hexadecimal */
        char *product;
        char *serial;
        char *interface; /* of a USB device with several: "00" */
        char *part;      /* of several nodes of one interface, or a partition: "1" */
        char *place;     /* the connector, which does not change: "usb-1-2:1.0" */
        StringMap properties;
        uint64_t number; /* dev_t */
} DeviceFacts;

void device_facts_done(DeviceFacts *facts);

bool device_facts_match(const DeviceFacts *facts, const NodeDeviceConfig *config);

/* The name of the device that stays the same when it is plugged in again: by its serial number,
 * else by its connector, else by its name. Letters, digits and "-_.:+". The caller frees it; NULL:
 * out of memory. */
char *device_facts_identity(const DeviceFacts *facts);

/* The conditions of a rule for messages: "subsystem tty, vendor 0403". The caller frees it; NULL:
 * out of memory. */
char *node_device_describe(const NodeDeviceConfig *config);
