/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The ledger of devices and the containers that have them (kubelet: podDevices). Pure. */

#include "agent/model/device.h"

typedef enum AllocationState {
        ALLOCATION_PREFERRING, /* the provider is choosing; there are no devices yet */
        ALLOCATION_PREFERRED,  /* the provider has chosen */
        ALLOCATION_PENDING,    /* the devices are reserved, and the provider is allocating them */
        ALLOCATION_DONE,
        ALLOCATION_FAILED,
} AllocationState;

typedef enum StartState {
        START_NONE,
        START_PENDING, /* the provider is preparing the start of the container */
        START_PREPARED,
        START_FAILED,
} StartState;

/* The devices of one resource that one container has. */
typedef struct DeviceAllocation {
        char *uid; /* UID of the pod */
        char *container;
        char *resource;
        AllocationState state;
        bool is_saved;    /* it is stored in the checkpoint */
        bool is_old;      /* from an earlier boot, so the existence of its devices must be checked
                           */
        uint64_t call;    /* the call to the provider that is in progress; otherwise 0 */
        char **preferred; /* the provider's choice */
        char **ids;
        DeviceEdits edits;
        char *error; /* error of the failed allocation or start */
        StartState start;
        uint64_t start_call;
} DeviceAllocation;

typedef struct DeviceLedger {
        LIST_OF(DeviceAllocation) allocations;
} DeviceLedger;

void device_ledger_done(DeviceLedger *ledger);

/* Pointers are valid until an allocation is added or removed. NULL: there is none. */
DeviceAllocation *device_ledger_find(const DeviceLedger *ledger, const char *uid,
                                     const char *container, const char *resource);
DeviceAllocation *device_ledger_find_call(const DeviceLedger *ledger, uint64_t call);

/* NULL: out of memory. */
DeviceAllocation *device_ledger_add(DeviceLedger *ledger, const char *uid, const char *container,
                                    const char *resource);

/* Removes all allocations of a pod. Returns whether there were any. */
bool device_ledger_remove_pod(DeviceLedger *ledger, const char *uid);

/* Whether a container of any pod has the device, or is about to receive it. */
bool device_ledger_uses(const DeviceLedger *ledger, const char *resource, const char *id);
