/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-devices/device-slots.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "common/text.h"

#include <errno.h>
#include <stdlib.h>

#define ABSENT_PREFIX "absent-"

void device_slots_done(DeviceSlots *slots) {
        device_list_done(&slots->devices);
        string_map_done(&slots->renamed);
}

bool device_slot_is_of(const char *id, const char *identity) {
        size_t length = strlen(identity);

        return strncmp(id, identity, length) == 0 && (id[length] == '\0' || id[length] == '#');
}

static bool is_placeholder(const char *id) {
        return strncmp(id, ABSENT_PREFIX, strlen(ABSENT_PREFIX)) == 0;
}

static bool has_slot(const DeviceList *list, const char *id) {
        for (size_t i = 0; i < list->n; i++)
                if (streq(list->items[i].id, id))
                        return true;
        return false;
}

static int add_slot(DeviceList *list, const char *id, bool is_healthy, bool is_absent) {
        Device *device = ARRAY_APPEND(list->items, list->n);

        if (!device)
                return -ENOMEM;
        device->is_healthy = is_healthy;
        device->is_absent = is_absent;
        device->id = strdup(id);
        return device->id ? 0 : -ENOMEM;
}

static size_t places_of(const NodeDeviceConfig *config) {
        return config->count.is_set ? (size_t) config->count.value : NODE_DEVICES_MAX;
}

static int add_shares(const NodeDeviceConfig *config, const char *identity, DeviceList *list) {
        int r = 0;

        for (size_t i = 1; i <= places_of(config) && r >= 0; i++) {
                cleanup_free char *id = text_format("%s#%zu", identity, i);

                r = id ? add_slot(list, id, true, false) : -ENOMEM;
        }
        return r;
}

static bool is_held(const char *identity, char *const *held) {
        for (size_t i = 0; held && held[i]; i++)
                if (device_slot_is_of(held[i], identity))
                        return true;
        return false;
}

/* Devices that are allocated to containers come first, so that the limit excludes only others. */
static int add_present_slots(const NodeDeviceConfig *config, char *const *present,
                             char *const *held, bool are_held, DeviceList *list) {
        int r = 0;

        for (size_t i = 0; present && present[i] && r >= 0; i++) {
                if (is_held(present[i], held) != are_held)
                        continue;
                if (config->is_shared)
                        r = add_shares(config, present[i], list);
                else if (are_held || list->n < places_of(config))
                        r = add_slot(list, present[i], true, false);
        }
        return r;
}

/* A device that is present, and that no container has. NULL: there is none. */
static const Device *find_free_device(const DeviceSlots *slots, char *const *held) {
        for (size_t i = 0; i < slots->devices.n; i++) {
                const Device *device = &slots->devices.items[i];
                bool is_taken = strv_contains(held, device->id);

                for (size_t j = 0; j < slots->renamed.n && !is_taken; j++)
                        is_taken = streq(slots->renamed.items[j].value, device->id);
                if (!is_taken && !device->is_absent)
                        return device;
        }
        return NULL;
}

/* A container that waits for a device may get any device; a container that had a device gets only
 * that one. */
static int add_absent_slots(const NodeDeviceConfig *config, char *const *held, DeviceSlots *slots) {
        int r = 0;

        for (size_t i = 0; held && held[i] && r >= 0; i++) {
                const Device *device;

                if (has_slot(&slots->devices, held[i]))
                        continue;
                device = is_placeholder(held[i]) ? find_free_device(slots, held) : NULL;
                r = device ? string_map_set(&slots->renamed, held[i], device->id)
                           : add_slot(&slots->devices, held[i], config->is_optional, true);
        }
        return r;
}

/* Adds the number of devices that can be requested even if none is present. */
static int add_placeholders(const NodeDeviceConfig *config, DeviceList *list) {
        size_t n = config->count.is_set || config->is_shared ? places_of(config) : 1;
        int r = 0;

        for (size_t i = 1; list->n < n && r >= 0; i++) {
                cleanup_free char *id = text_format(ABSENT_PREFIX "%zu", i);

                if (!id)
                        return -ENOMEM;
                if (!has_slot(list, id))
                        r = add_slot(list, id, true, true);
        }
        return r;
}

int device_slots_compute(const NodeDeviceConfig *config, char *const *present, char *const *held,
                         DeviceSlots *ret) {
        int r;

        *ret = (DeviceSlots){ 0 };
        r = add_present_slots(config, present, held, true, &ret->devices);
        if (r >= 0)
                r = add_present_slots(config, present, held, false, &ret->devices);
        if (r >= 0)
                r = add_absent_slots(config, held, ret);
        if (r >= 0 && config->is_optional)
                r = add_placeholders(config, &ret->devices);
        return r;
}
