/* SPDX-License-Identifier: Apache-2.0 */
/* Resources and their providers. */

#include "agent/devices/device-manager.h"

#include "agent/devices/device-manager-private.h"
#include "common/array.h"
#include "common/checksummed.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/file.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <stdlib.h>

/* The kubelet keeps the capacity of a lost provider for this long. */
#define PROVIDER_GRACE_USEC (UINT64_C(300) * USEC_PER_SEC)

static const char checkpoint_name[] = "devices";

enum {
        CHECKPOINT_MAX = 16 * 1024 * 1024
};

/* ---- resources ---- */

static int compare_resource(const char *name, const DeviceResource *resource) {
        return strcmp(name, resource->name);
}

DeviceResource *device_manager_find_resource(const DeviceManager *manager, const char *name) {
        return ARRAY_FIND(name, manager->resources.items, manager->resources.n, compare_resource);
}

DeviceResource *device_manager_make_resource(DeviceManager *manager, const char *name) {
        DeviceResource *resource = device_manager_find_resource(manager, name);
        char *copy;
        size_t at;

        if (resource)
                return resource;
        copy = strdup(name);
        at = ARRAY_FIND_PLACE(name, manager->resources.items, manager->resources.n,
                              compare_resource);
        resource = copy ? ARRAY_INSERT(manager->resources.items, manager->resources.n, at) : NULL;
        if (resource)
                resource->name = copy;
        else
                free(copy);
        return resource;
}

static void notify_capacity(const DeviceManager *manager) {
        if (manager->config.on_capacity_changed)
                manager->config.on_capacity_changed(manager->config.userdata);
}

static void notify_pod(const DeviceManager *manager, const char *uid) {
        if (manager->config.on_pod_changed)
                manager->config.on_pod_changed(uid, manager->config.userdata);
}

/* Notifies the pods that have a device of the resource, because their statuses show its health. */
static void notify_owners(const DeviceManager *manager, const char *resource) {
        for (size_t i = 0; i < manager->ledger.allocations.n; i++)
                if (streq(manager->ledger.allocations.items[i].resource, resource))
                        notify_pod(manager, manager->ledger.allocations.items[i].uid);
}

static void save_or_log(const DeviceManager *manager) {
        cleanup_error Error error = ERROR_NULL;
        int r = device_manager_save(manager, &error);

        if (r < 0)
                log_warning("%s", error_message(&error, r));
}

/* ---- the manager ---- */

int device_manager_save(const DeviceManager *manager, Error *reterr) {
        cleanup_free char *text = NULL;
        cleanup_close int fd = -EBADF;
        int r;

        if (!manager->config.state_dir)
                return 0;
        text = device_checkpoint_print(manager);
        if (!text)
                return -ENOMEM;
        fd = open(manager->config.state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = fd < 0 ? -errno : checksummed_write_at(fd, checkpoint_name, text, 0600);
        return r < 0 ? error_setf(reterr, -r, "cannot write %s/%s: %s", manager->config.state_dir,
                                  checkpoint_name, strerror(-r))
                     : 0;
}

static void forget_all(DeviceManager *manager) {
        for (size_t i = 0; i < manager->resources.n; i++) {
                free(manager->resources.items[i].name);
                device_list_done(&manager->resources.items[i].devices);
        }
        free(manager->resources.items);
        manager->resources.items = NULL;
        manager->resources.n = 0;
        device_ledger_done(&manager->ledger);
}

static int load_checkpoint(DeviceManager *manager) {
        static const char consequence[] = "pods that have devices get others when they start again";
        cleanup_free char *text = NULL;
        cleanup_close int fd = -EBADF;
        int r;

        if (!manager->config.state_dir)
                return 0;
        fd = open(manager->config.state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return 0;
        r = checksummed_load_at(fd, checkpoint_name, CHECKPOINT_MAX, "the checkpoint of devices",
                                consequence, &text);
        if (r <= 0)
                return r;
        r = device_checkpoint_parse(manager, text);
        if (r != -EBADMSG)
                return r;
        forget_all(manager);
        checksummed_set_aside_at(fd, checkpoint_name);
        log_warning("%s/%s is not a checkpoint of devices, setting it aside; %s",
                    manager->config.state_dir, checkpoint_name, consequence);
        return 0;
}

int device_manager_new(const DeviceManagerConfig *config, DeviceManager **ret) {
        cleanup_with(device_manager_freep) DeviceManager *manager = calloc(1, sizeof(*manager));
        int r;

        if (!manager)
                return -ENOMEM;
        manager->config = *config;
        manager->config.state_dir = config->state_dir ? strdup(config->state_dir) : NULL;
        manager->config.boot_id = strdup(strna(config->boot_id));
        if ((config->state_dir && !manager->config.state_dir) || !manager->config.boot_id)
                return -ENOMEM;
        r = load_checkpoint(manager);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(manager);
        return 0;
}

DeviceManager *device_manager_free(DeviceManager *manager) {
        if (!manager)
                return NULL;
        forget_all(manager);
        free((char *) (uintptr_t) manager->config.state_dir);
        free((char *) (uintptr_t) manager->config.boot_id);
        free(manager);
        return NULL;
}

/* ---- providers ---- */

int device_manager_register(DeviceManager *manager, const char *name,
                            const DeviceProvider *provider) {
        DeviceResource *resource = device_manager_make_resource(manager, name);
        bool is_new;

        if (!resource)
                return -ENOMEM;
        if (resource->provider.ops && resource->provider.live)
                return 0;
        is_new = !resource->is_registered;
        resource->provider = *provider;
        resource->is_registered = true;
        resource->gone_since = 0;
        if (is_new)
                save_or_log(manager);
        DIE_AT("devices.registered");
        notify_capacity(manager);
        return 0;
}

static int compare_device_places(const void *a, const void *b) {
        const Device *const *x = a, *const *y = b;
        int r = strcmp((*x)->id, (*y)->id);

        return r != 0 ? r : (*x > *y) - (*x < *y);
}

/* Like in the kubelet, the last of several devices with the same ID counts; otherwise a pod would
 * be admitted with fewer devices than it requests. The order stays the same. */
static int drop_repeated_devices(DeviceList *devices) {
        cleanup_free Device **sorted = calloc(devices->n + 1, sizeof(Device *));
        size_t n = 0;

        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < devices->n; i++)
                sorted[i] = &devices->items[i];
        qsort(sorted, devices->n, sizeof(Device *), compare_device_places);
        for (size_t i = 1; i < devices->n; i++)
                if (streq(sorted[i - 1]->id, sorted[i]->id)) {
                        free(sorted[i - 1]->numa_nodes.items);
                        free(TAKE_PTR(sorted[i - 1]->id));
                }
        for (size_t i = 0; i < devices->n; i++)
                if (devices->items[i].id)
                        devices->items[n++] = devices->items[i];
        devices->n = n;
        return 0;
}

static bool lists_differ(const DeviceList *a, const DeviceList *b) {
        if (a->n != b->n)
                return true;
        for (size_t i = 0; i < a->n; i++)
                if (!streq(a->items[i].id, b->items[i].id) ||
                    a->items[i].is_healthy != b->items[i].is_healthy ||
                    a->items[i].is_absent != b->items[i].is_absent)
                        return true;
        return false;
}

int device_manager_set_devices_take(DeviceManager *manager, const char *name, const void *provider,
                                    DeviceList *devices) {
        DeviceResource *resource = device_manager_find_resource(manager, name);
        bool is_current =
                resource && resource->provider.ops && resource->provider.userdata == provider;
        int r = is_current ? drop_repeated_devices(devices) : 0;
        DeviceList old;

        if (!is_current || r < 0) {
                device_list_done(devices);
                return r;
        }
        old = resource->devices;
        resource->devices = *devices;
        *devices = (DeviceList){ 0 };
        if (lists_differ(&old, &resource->devices)) {
                notify_capacity(manager);
                notify_owners(manager, name);
                notify_pod(manager, NULL);
        }
        device_list_done(&old);
        return 0;
}

int device_manager_list_held(const DeviceManager *manager, const char *name, char ***ret_ids) {
        cleanup_strv char **held = NULL;

        for (size_t i = 0; i < manager->ledger.allocations.n; i++) {
                const DeviceAllocation *allocation = &manager->ledger.allocations.items[i];

                if (!streq(allocation->resource, name))
                        continue;
                strv_foreach(id, allocation->ids)
                        if (!strv_contains(held, *id) && strv_append(&held, *id) < 0)
                                return -ENOMEM;
        }
        *ret_ids = TAKE_PTR(held);
        return 0;
}

static int rename_in_allocation(DeviceAllocation *allocation, const char *from, const char *to) {
        strv_foreach(id, allocation->ids)
                if (streq(*id, from) && text_replace(id, to) < 0)
                        return -ENOMEM;
        return 0;
}

int device_manager_rename_device(DeviceManager *manager, const char *name, const char *from,
                                 const char *to) {
        int r = 0;

        for (size_t i = 0; i < manager->ledger.allocations.n && r >= 0; i++)
                if (streq(manager->ledger.allocations.items[i].resource, name))
                        r = rename_in_allocation(&manager->ledger.allocations.items[i], from, to);
        save_or_log(manager);
        return r;
}

void device_manager_refresh(const DeviceManager *manager, const char *name) {
        notify_owners(manager, name);
}

/* Requests to the provider will not be answered any more. */
static void fail_calls(DeviceManager *manager, const char *resource) {
        for (size_t i = 0; i < manager->ledger.allocations.n; i++) {
                DeviceAllocation *allocation = &manager->ledger.allocations.items[i];
                DeviceAnswer answer = { .error = "the device plugin has ended its connection" };

                if (!streq(allocation->resource, resource))
                        continue;
                if (allocation->call > 0)
                        device_manager_answer_take(manager, allocation->call, &answer);
                if (allocation->start_call > 0)
                        device_manager_answer_take(manager, allocation->start_call, &answer);
        }
}

void device_manager_unregister(DeviceManager *manager, const char *name, const void *provider,
                               uint64_t now_boottime_usec) {
        DeviceResource *resource = device_manager_find_resource(manager, name);

        if (!resource || !resource->provider.ops || resource->provider.userdata != provider)
                return;
        resource->provider.ops = NULL;
        resource->provider.userdata = NULL;
        resource->gone_since = MAX(now_boottime_usec, 1);
        for (size_t i = 0; i < resource->devices.n; i++)
                resource->devices.items[i].is_healthy = false;
        fail_calls(manager, name);
        notify_capacity(manager);
}

uint64_t device_manager_expire(DeviceManager *manager, uint64_t now) {
        uint64_t next = USEC_INFINITY;
        bool has_changed = false;

        for (size_t i = 0; i < manager->resources.n; i++) {
                DeviceResource *resource = &manager->resources.items[i];

                if (resource->gone_since == 0)
                        continue;
                if (now < resource->gone_since + PROVIDER_GRACE_USEC) {
                        next = MIN(next, resource->gone_since + PROVIDER_GRACE_USEC);
                        continue;
                }
                resource->gone_since = 0;
                resource->is_registered = false;
                device_list_done(&resource->devices);
                has_changed = true;
        }
        if (has_changed) {
                save_or_log(manager);
                notify_capacity(manager);
        }
        return next;
}

static bool take_allocated(DeviceAllocation *allocation, DeviceAnswer *answer) {
        bool was_preferring = allocation->state == ALLOCATION_PREFERRING;

        allocation->call = 0;
        if (answer->error) {
                allocation->state = ALLOCATION_FAILED;
                allocation->error = strdup(answer->error);
        } else if (was_preferring) {
                allocation->state = ALLOCATION_PREFERRED;
                allocation->preferred = TAKE_PTR(answer->ids);
        } else {
                DIE_AT("devices.allocated");
                allocation->state = ALLOCATION_DONE;
                allocation->edits = answer->edits;
                answer->edits = (DeviceEdits){ 0 };
        }
        return true;
}

static void take_started(DeviceAllocation *allocation, const DeviceAnswer *answer) {
        allocation->start_call = 0;
        allocation->start = answer->error ? START_FAILED : START_PREPARED;
        free(allocation->error);
        allocation->error = answer->error ? strdup(answer->error) : NULL;
}

void device_manager_answer_take(DeviceManager *manager, uint64_t call, DeviceAnswer *answer) {
        DeviceAllocation *allocation = device_ledger_find_call(&manager->ledger, call);

        if (allocation && allocation->call == call)
                (void) take_allocated(allocation, answer);
        else if (allocation)
                take_started(allocation, answer);
        strv_free(answer->ids);
        device_edits_done(&answer->edits);
        *answer = (DeviceAnswer){ 0 };
        if (allocation)
                notify_pod(manager, allocation->uid);
}

/* ---- queries ---- */

int device_manager_list_resources(const DeviceManager *manager, NodeDevicesList *ret) {
        for (size_t i = 0; i < manager->resources.n; i++) {
                const DeviceResource *resource = &manager->resources.items[i];
                NodeDevices *item = ARRAY_APPEND(ret->items, ret->n);

                if (!item)
                        return -ENOMEM;
                item->name = strdup(resource->name);
                if (!item->name)
                        return -ENOMEM;
                item->capacity = (int64_t) resource->devices.n;
                for (size_t j = 0; j < resource->devices.n; j++)
                        item->allocatable += resource->devices.items[j].is_healthy;
        }
        return 0;
}

const DeviceList *device_manager_devices(const DeviceManager *manager, const char *name) {
        const DeviceResource *resource = device_manager_find_resource(manager, name);

        return resource ? &resource->devices : NULL;
}

static bool belongs_to(const DeviceAllocation *allocation, const char *uid, const char *container) {
        return allocation->state == ALLOCATION_DONE && streq(allocation->uid, uid) &&
               streq(allocation->container, container);
}

void device_manager_foreach_of(const DeviceManager *manager, const char *uid, const char *container,
                               device_visit_t visit, void *userdata) {
        for (size_t i = 0; i < manager->ledger.allocations.n; i++) {
                const DeviceAllocation *allocation = &manager->ledger.allocations.items[i];

                if (belongs_to(allocation, uid, container))
                        visit(allocation->resource, allocation->ids, userdata);
        }
}

static bool is_live(const DeviceManager *manager, const DeviceAllocation *allocation) {
        const DeviceResource *resource =
                device_manager_find_resource(manager, allocation->resource);

        return resource && resource->provider.ops && resource->provider.live;
}

bool device_manager_has_live(const DeviceManager *manager, const char *uid, const char *container) {
        for (size_t i = 0; i < manager->ledger.allocations.n; i++)
                if (belongs_to(&manager->ledger.allocations.items[i], uid, container) &&
                    is_live(manager, &manager->ledger.allocations.items[i]))
                        return true;
        return false;
}

static int merge_allocation(const DeviceManager *manager, const DeviceAllocation *allocation,
                            DeviceEdits *edits) {
        const DeviceResource *resource =
                device_manager_find_resource(manager, allocation->resource);
        cleanup_with(device_edits_done) DeviceEdits current = { 0 };
        int r;

        if (!is_live(manager, allocation))
                return device_edits_merge(edits, &allocation->edits);
        r = resource->provider.live->current_edits(resource->provider.userdata,
                                                   allocation->resource, allocation->ids, &current);
        return r < 0 ? r : device_edits_merge(edits, &current);
}

int device_manager_collect_edits(const DeviceManager *manager, const char *uid,
                                 const char *container, DeviceEdits *ret) {
        int r = 0;

        for (size_t i = 0; i < manager->ledger.allocations.n && r >= 0; i++) {
                const DeviceAllocation *allocation = &manager->ledger.allocations.items[i];

                if (belongs_to(allocation, uid, container))
                        r = merge_allocation(manager, allocation, ret);
        }
        if (r < 0)
                device_edits_done(ret);
        return r;
}

/* A device is unhealthy only if its provider reports that; a device that is not listed, or that has
 * no provider, counts as healthy. */
static bool is_listed_unhealthy(const DeviceResource *resource, const char *id) {
        if (!resource || !resource->provider.ops)
                return false;
        for (size_t i = 0; i < resource->devices.n; i++)
                if (streq(resource->devices.items[i].id, id))
                        return !resource->devices.items[i].is_healthy ||
                               resource->devices.items[i].is_absent;
        return false;
}

static int add_resource_status(const DeviceManager *manager, const DeviceAllocation *allocation,
                               ResourceStatusList *list) {
        const DeviceResource *resource =
                device_manager_find_resource(manager, allocation->resource);
        ResourceStatus *status = ARRAY_APPEND(list->items, list->n);

        if (!status)
                return -ENOMEM;
        status->name = strdup(allocation->resource);
        if (!status->name)
                return -ENOMEM;
        strv_foreach(id, allocation->ids) {
                ResourceHealth *health = ARRAY_APPEND(status->resources.items, status->resources.n);

                if (!health)
                        return -ENOMEM;
                health->id = strdup(*id);
                if (!health->id)
                        return -ENOMEM;
                health->is_unhealthy = is_listed_unhealthy(resource, *id);
        }
        return 0;
}

int device_manager_container_status(const DeviceManager *manager, const char *uid,
                                    const char *container, ResourceStatusList *ret) {
        int r = 0;

        for (size_t i = 0; i < manager->ledger.allocations.n && r >= 0; i++)
                if (belongs_to(&manager->ledger.allocations.items[i], uid, container))
                        r = add_resource_status(manager, &manager->ledger.allocations.items[i],
                                                ret);
        if (r < 0)
                resource_status_list_done(ret);
        return r;
}

/* ---- the end of pods ---- */

void device_manager_release(DeviceManager *manager, const char *uid) {
        cleanup_free char *copy = strdup(uid); /* it may be owned by the ledger */

        if (!copy || !device_ledger_remove_pod(&manager->ledger, copy))
                return;
        save_or_log(manager);
        notify_pod(manager, NULL);
}

void device_manager_sweep(DeviceManager *manager, bool (*is_there)(const char *uid, void *userdata),
                          void *userdata) {
        for (size_t i = manager->ledger.allocations.n; i-- > 0;)
                if (i < manager->ledger.allocations.n &&
                    !is_there(manager->ledger.allocations.items[i].uid, userdata))
                        device_manager_release(manager, manager->ledger.allocations.items[i].uid);
}
