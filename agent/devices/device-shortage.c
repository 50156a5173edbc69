/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pod would get its devices if other pods released theirs. */

#include "agent/devices/device-manager-private.h"
#include "agent/model/cdi.h"
#include "agent/model/containers.h"
#include "common/macros.h"
#include "common/strv.h"

static size_t limit_of(const Container *container, const char *resource) {
        for (size_t i = 0; i < container->resources.limits.extended.n; i++) {
                const ExtendedResource *limit = &container->resources.limits.extended.items[i];

                if (streq(limit->name, resource))
                        return (size_t) MAX(limit->amount.value, 0);
        }
        return 0;
}

/* Counts the devices that the pod has at the same time: an init container leaves its devices to the
 * containers after it. */
static size_t count_needed(const PodSpec *spec, const char *resource) {
        const Container *container;
        size_t kept = 0, most = 0;

        pod_foreach_container(container, spec) {
                size_t n = limit_of(container, resource);

                most = MAX(most, kept + n);
                if (container_role(spec, container) != ROLE_INIT)
                        kept += n;
        }
        return most;
}

static bool is_kept(const DeviceManager *manager, const char *resource, const char *id,
                    device_released_t is_released, void *userdata) {
        for (size_t i = 0; i < manager->ledger.allocations.n; i++) {
                const DeviceAllocation *allocation = &manager->ledger.allocations.items[i];

                if (streq(allocation->resource, resource) && strv_contains(allocation->ids, id) &&
                    !is_released(allocation->uid, userdata))
                        return true;
        }
        return false;
}

static size_t count_free(const DeviceManager *manager, const DeviceResource *resource,
                         device_released_t is_released, void *userdata) {
        size_t n = 0;

        for (size_t i = 0; i < resource->devices.n; i++)
                n += resource->devices.items[i].is_healthy &&
                     !is_kept(manager, resource->name, resource->devices.items[i].id, is_released,
                              userdata);
        return n;
}

bool device_manager_has_enough(const DeviceManager *manager, const Pod *pod,
                               device_released_t is_released, void *userdata) {
        const Container *container;

        pod_foreach_container(container, &pod->spec) {
                for (size_t i = 0; i < container->resources.limits.extended.n; i++) {
                        const char *name = container->resources.limits.extended.items[i].name;
                        const DeviceResource *resource =
                                device_manager_find_resource(manager, name);
                        size_t needed = is_cdi_resource(name) ? 0 : count_needed(&pod->spec, name);

                        if (needed > 0 && (!resource || count_free(manager, resource, is_released,
                                                                   userdata) < needed))
                                return false;
                }
        }
        return true;
}
