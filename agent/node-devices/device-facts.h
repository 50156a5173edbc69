/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A device of the kernel that has a node in /dev, and the rules of the configuration. Pure. */

#include "agent/model/config.h"

typedef struct DeviceFacts { /* strings are NULL if they are unknown */
        char *syspath;
        char *subsystem; /* "tty" */
        char *sysname;   /* "ttyUSB0" */
        char *node;      /* "/dev/ttyUSB0" */
        char **links;    /* links made by udev: "/dev/serial/by-id/…" */
        char *vendor;    /* for USB and PCI, hexadecimal */
        char *product;
        char *serial;
        char *interface; /* number of the interface of a USB device with several: "00" */
        char *part;      /* number of the node if an interface has several, or of the partition:
                          * "1" */
        char *place;     /* the connector, which does not change: "usb-1-2:1.0" */
        StringMap properties;
        uint64_t number; /* dev_t */
} DeviceFacts;

void device_facts_done(DeviceFacts *facts);

bool device_facts_match(const DeviceFacts *facts, const NodeDeviceConfig *config);

/* The name of a device that stays the same when the device is plugged in again: from its serial
 * number, otherwise from its connector, otherwise from its name. Letters, digits and "-_.:+". The
 * caller frees it; NULL: out of memory. */
char *device_facts_identity(const DeviceFacts *facts);

/* The conditions of a rule for messages: "subsystem tty, vendor 0403". The caller frees it; NULL:
 * out of memory. */
char *node_device_describe(const NodeDeviceConfig *config);
