/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The devices that a resource lists, computed from the devices that are present and those that
 * containers have. An ID is the identity of a device; "<identity>#<n>" for each container that may
 * share it; "absent-<n>" for an optional device that is absent. Pure. */

#include "agent/model/config.h"
#include "agent/model/device.h"

typedef struct DeviceSlots {
        DeviceList devices;
        StringMap renamed; /* absent devices that are allocated to containers, and the present
                            * devices that take their place */
} DeviceSlots;

void device_slots_done(DeviceSlots *slots);

/* 'present' are identities, without duplicates, in order of arrival; 'held' are IDs. 0 or -ENOMEM;
 * the caller releases '*ret' in any case. */
int device_slots_compute(const NodeDeviceConfig *config, char *const *present, char *const *held,
                         DeviceSlots *ret);

/* Whether the ID belongs to the device with this identity. */
bool device_slot_is_of(const char *id, const char *identity);
