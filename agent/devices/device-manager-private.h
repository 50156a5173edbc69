/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of the device manager that its files share. */

#include "agent/devices/device-ledger.h"
#include "agent/devices/device-manager.h"

typedef struct DeviceResource {
        char *name;
        DeviceProvider provider; /* ops are NULL if there is no provider */
        bool is_registered;      /* a provider is registered, or was a short time ago, or before the
                                    agent restarted */
        uint64_t gone_since;     /* boot time; 0: its provider is registered, or has not registered
                                  * yet */
        DeviceList devices;      /* without a provider no device is healthy */
} DeviceResource;

struct DeviceManager {
        DeviceManagerConfig config;        /* 'state_dir' is a copy */
        LIST_OF(DeviceResource) resources; /* sorted by name */
        DeviceLedger ledger;
        uint64_t last_call;
};

/* NULL: not known. */
DeviceResource *device_manager_find_resource(const DeviceManager *manager, const char *name);

/* Finds the resource with that name, or adds it. NULL: out of memory. */
DeviceResource *device_manager_make_resource(DeviceManager *manager, const char *name);

/* ---- checkpoint ---- */

/* The registered resources and the completed allocations as text. The caller frees it. NULL: out of
 * memory. */
char *device_checkpoint_print(const DeviceManager *manager);

/* Parses a checkpoint into a new manager. 0; -EBADMSG: it is not a checkpoint, and the manager may
 * contain a part of it; -ENOMEM. */
int device_checkpoint_parse(DeviceManager *manager, const char *text);

/* Writes the file. 0 or -errno with a message. */
int device_manager_save(const DeviceManager *manager, Error *reterr);
