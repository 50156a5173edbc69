/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/devices/device-ledger.h"

#include "common/array.h"
#include "common/strv.h"

#include <stdlib.h>

static void device_allocation_done(DeviceAllocation *allocation) {
        free(allocation->uid);
        free(allocation->container);
        free(allocation->resource);
        strv_free(allocation->preferred);
        strv_free(allocation->ids);
        device_edits_done(&allocation->edits);
        free(allocation->error);
}

void device_ledger_done(DeviceLedger *ledger) {
        for (size_t i = 0; i < ledger->allocations.n; i++)
                device_allocation_done(&ledger->allocations.items[i]);
        free(ledger->allocations.items);
        *ledger = (DeviceLedger){ 0 };
}

DeviceAllocation *device_ledger_find(const DeviceLedger *ledger, const char *uid,
                                     const char *container, const char *resource) {
        for (size_t i = 0; i < ledger->allocations.n; i++) {
                DeviceAllocation *allocation = &ledger->allocations.items[i];

                if (streq(allocation->uid, uid) && streq(allocation->container, container) &&
                    streq(allocation->resource, resource))
                        return allocation;
        }
        return NULL;
}

DeviceAllocation *device_ledger_find_call(const DeviceLedger *ledger, uint64_t call) {
        for (size_t i = 0; call > 0 && i < ledger->allocations.n; i++) {
                DeviceAllocation *allocation = &ledger->allocations.items[i];

                if (allocation->call == call || allocation->start_call == call)
                        return allocation;
        }
        return NULL;
}

DeviceAllocation *device_ledger_add(DeviceLedger *ledger, const char *uid, const char *container,
                                    const char *resource) {
        DeviceAllocation *allocation =
                ARRAY_APPEND(ledger->allocations.items, ledger->allocations.n);

        if (!allocation)
                return NULL;
        allocation->uid = strdup(uid);
        allocation->container = strdup(container);
        allocation->resource = strdup(resource);
        if (allocation->uid && allocation->container && allocation->resource)
                return allocation;
        device_allocation_done(allocation);
        ledger->allocations.n--;
        return NULL;
}

bool device_ledger_remove_pod(DeviceLedger *ledger, const char *uid) {
        size_t before = ledger->allocations.n;

        for (size_t i = ledger->allocations.n; i-- > 0;)
                if (streq(ledger->allocations.items[i].uid, uid)) {
                        device_allocation_done(&ledger->allocations.items[i]);
                        ARRAY_REMOVE(ledger->allocations.items, ledger->allocations.n, i);
                }
        return ledger->allocations.n < before;
}

bool device_ledger_uses(const DeviceLedger *ledger, const char *resource, const char *id) {
        for (size_t i = 0; i < ledger->allocations.n; i++) {
                const DeviceAllocation *allocation = &ledger->allocations.items[i];

                if (streq(allocation->resource, resource) && strv_contains(allocation->ids, id))
                        return true;
        }
        return false;
}
