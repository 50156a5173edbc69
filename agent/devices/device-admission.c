/* SPDX-License-Identifier: Apache-2.0 */
/* Determines which devices a container gets, or the kubelet's reason why it gets none. Each
 * admission attempt starts with the first container, and proceeds as far as the providers have
 * answered. */

#include "agent/devices/device-manager-private.h"
#include "agent/model/cdi.h"
#include "agent/model/containers.h"
#include "common/cleanup.h"
#include "common/failpoint.h"
#include "common/strv.h"
#include "common/text.h"

#include <inttypes.h>
#include <stdlib.h>

/* One resource of one container that is being admitted. */
typedef struct DeviceRequest {
        DeviceManager *manager;
        const Pod *pod;
        const Container *container;
        DeviceResource *resource;
        size_t n; /* devices that it requests */
} DeviceRequest;

static const char *uid_of(const DeviceRequest *request) {
        return request->pod->metadata.uid;
}

static bool is_device_healthy(const DeviceResource *resource, const char *id) {
        for (size_t i = 0; i < resource->devices.n; i++)
                if (streq(resource->devices.items[i].id, id))
                        return resource->devices.items[i].is_healthy;
        return false;
}

static bool has_healthy_device(const DeviceResource *resource) {
        for (size_t i = 0; i < resource->devices.n; i++)
                if (resource->devices.items[i].is_healthy)
                        return true;
        return false;
}

/* ---- which devices are left ---- */

/* Whether an earlier container leaves the device to this one: ordinary init containers have ended
 * by then, but sidecars and containers that run at the same time keep their devices. */
static bool is_reusable(const DeviceRequest *request, const char *id) {
        const PodSpec *spec = &request->pod->spec;
        const Container *container;
        bool is_left = false;

        pod_foreach_container(container, spec) {
                const DeviceAllocation *allocation;

                if (container == request->container)
                        break;
                allocation = device_ledger_find(&request->manager->ledger, uid_of(request),
                                                container->name, request->resource->name);
                if (allocation && strv_contains(allocation->ids, id))
                        is_left = container_role(spec, container) == ROLE_INIT;
        }
        return is_left;
}

typedef struct DeviceChoice {
        char **chosen;    /* devices that are reused */
        char **available; /* healthy devices that are not in use */
} DeviceChoice;

static void device_choice_done(DeviceChoice *choice) {
        strv_free(choice->chosen);
        strv_free(choice->available);
}

static int find_candidates(const DeviceRequest *request, DeviceChoice *choice) {
        int r = 0;

        for (size_t i = 0; i < request->resource->devices.n && r >= 0; i++) {
                const Device *device = &request->resource->devices.items[i];

                if (!device->is_healthy)
                        continue;
                if (!device_ledger_uses(&request->manager->ledger, request->resource->name,
                                        device->id))
                        r = strv_append(&choice->available, device->id);
                else if (strv_length(choice->chosen) < request->n &&
                         is_reusable(request, device->id))
                        r = strv_append(&choice->chosen, device->id);
        }
        return r;
}

static int take_devices(DeviceChoice *choice, char *const *from, size_t n) {
        int r = 0;

        for (size_t i = 0; from && from[i] && strv_length(choice->chosen) < n && r >= 0; i++)
                if (strv_contains(choice->available, from[i]) &&
                    !strv_contains(choice->chosen, from[i]))
                        r = strv_append(&choice->chosen, from[i]);
        return r;
}

/* ---- the calls of the provider ---- */

static uint64_t next_call(DeviceManager *manager) {
        return ++manager->last_call;
}

static int ask_preference(const DeviceRequest *request, DeviceAllocation *allocation,
                          const DeviceChoice *choice, Error *reterr) {
        const DeviceProvider *provider = &request->resource->provider;
        cleanup_strv char **available = NULL;
        int r = strv_extend(&available, choice->chosen);

        if (r >= 0)
                r = strv_extend(&available, choice->available);
        if (r < 0)
                return r;
        allocation->state = ALLOCATION_PREFERRING;
        allocation->call = next_call(request->manager);
        r = provider->ops->prefer(provider->userdata, allocation->call, request->resource->name,
                                  available, choice->chosen, request->n, &allocation->preferred,
                                  reterr);
        if (r == -EINPROGRESS)
                return r;
        allocation->call = 0;
        allocation->state = ALLOCATION_PREFERRED;
        return r;
}

static int ask_allocation(const DeviceRequest *request, DeviceAllocation *allocation,
                          DeviceChoice *choice, Error *reterr) {
        const DeviceProvider *provider = &request->resource->provider;
        int r = take_devices(choice, allocation->preferred, request->n);

        if (r >= 0)
                r = take_devices(choice, choice->available, request->n);
        if (r < 0)
                return r;
        allocation->ids = TAKE_PTR(choice->chosen);
        allocation->state = ALLOCATION_PENDING;
        allocation->call = next_call(request->manager);
        DIE_AT("devices.allocating");
        r = provider->ops->allocate(provider->userdata, allocation->call, request->resource->name,
                                    allocation->ids, &allocation->edits, reterr);
        if (r == -EINPROGRESS)
                return r;
        allocation->call = 0;
        allocation->state = ALLOCATION_DONE;
        return r;
}

/* ---- one resource of one container ---- */

static int check_registered(const DeviceRequest *request, Error *reterr) {
        const DeviceResource *resource = request->resource;

        if (!resource->is_registered)
                return error_setf(reterr, ENXIO, "cannot allocate unregistered device %s",
                                  resource->name);
        if (!resource->provider.ops || !has_healthy_device(resource))
                return error_setf(reterr, ENXIO,
                                  "no healthy devices present; cannot allocate unhealthy devices "
                                  "%s",
                                  resource->name);
        return 0;
}

static int check_candidates(const DeviceRequest *request, DeviceChoice *choice, Error *reterr) {
        size_t n_chosen, n_available;
        int r = find_candidates(request, choice);

        if (r < 0)
                return r;
        n_chosen = strv_length(choice->chosen);
        n_available = strv_length(choice->available);
        if (n_chosen + n_available >= request->n)
                return 0;
        return error_setf(reterr, ENOSPC,
                          "requested number of devices unavailable for %s. Requested: %zu, "
                          "Available: %zu",
                          request->resource->name, request->n - n_chosen, n_available);
}

static int allocate_new(const DeviceRequest *request, DeviceAllocation *allocation, Error *reterr) {
        cleanup_with(device_choice_done) DeviceChoice choice = { 0 };
        int r = check_candidates(request, &choice, reterr);

        if (r < 0)
                return r;
        if (!allocation)
                allocation = device_ledger_add(&request->manager->ledger, uid_of(request),
                                               request->container->name, request->resource->name);
        if (!allocation)
                return -ENOMEM;
        if (allocation->state == ALLOCATION_PREFERRING && strv_length(choice.chosen) < request->n &&
            request->resource->provider.has_preferences) {
                r = ask_preference(request, allocation, &choice, reterr);
                if (r < 0)
                        return r;
        }
        return ask_allocation(request, allocation, &choice, reterr);
}

/* The device was allocated when the pod was admitted earlier. */
static int check_allocated(const DeviceRequest *request, DeviceAllocation *allocation,
                           Error *reterr) {
        int r;

        if (strv_length(allocation->ids) != request->n)
                return error_setf(reterr, EINVAL,
                                  "pod \"%s\" container \"%s\" changed request for resource \"%s\" "
                                  "from %zu to %zu",
                                  uid_of(request), request->container->name,
                                  request->resource->name, strv_length(allocation->ids),
                                  request->n);
        if (!allocation->is_old) /* its sandbox is being created again */
                return 0;
        r = check_registered(request, reterr);
        if (r < 0)
                return r;
        strv_foreach(id, allocation->ids)
                if (!is_device_healthy(request->resource, *id))
                        return error_setf(reterr, ENXIO,
                                          "previously allocated devices are no longer healthy; "
                                          "cannot allocate unhealthy devices %s",
                                          request->resource->name);
        allocation->is_old = allocation->is_saved = false;
        return 0;
}

/* To be called before the first request to a provider. */
static int check_free_devices(const DeviceRequest *request, Error *reterr) {
        cleanup_with(device_choice_done) DeviceChoice choice = { 0 };
        int r;

        if (device_ledger_find(&request->manager->ledger, uid_of(request), request->container->name,
                               request->resource->name))
                return 0;
        r = check_registered(request, reterr);
        return r < 0 ? r : check_candidates(request, &choice, reterr);
}

static int admit_resource(const DeviceRequest *request, Error *reterr) {
        DeviceAllocation *allocation =
                device_ledger_find(&request->manager->ledger, uid_of(request),
                                   request->container->name, request->resource->name);
        int r;

        if (allocation && allocation->call > 0)
                return -EINPROGRESS;
        if (allocation && allocation->state == ALLOCATION_FAILED)
                return error_setf(reterr, EREMOTEIO, "%s",
                                  allocation->error ? allocation->error : "out of memory");
        if (allocation && allocation->state == ALLOCATION_DONE)
                return check_allocated(request, allocation, reterr);
        r = check_registered(request, reterr);
        return r < 0 ? r : allocate_new(request, allocation, reterr);
}

/* Adds the remedy of the provider to the kubelet's message. */
static int explain_refusal(const DeviceRequest *request, int r, Error *reterr) {
        const DeviceProvider *provider = &request->resource->provider;
        cleanup_free char *remedy = NULL;

        if (!provider->ops || !provider->live || (r != -ENXIO && r != -ENOSPC))
                return r;
        remedy = provider->live->explain(provider->userdata, request->resource->name);
        if (remedy && reterr && reterr->message)
                (void) text_appendf(&reterr->message, ": %s", remedy);
        return r;
}

/* A step of the admission of one resource: the check, or the allocation. */
typedef int (*device_step_t)(const DeviceRequest *request, Error *reterr);

typedef struct DeviceAdmission {
        DeviceManager *manager;
        const Pod *pod;
        bool must_exist;
} DeviceAdmission;

static int refuse_unknown(const char *name, Error *reterr) {
        if (strncmp(name, NODE_DEVICE_PREFIX, strlen(NODE_DEVICE_PREFIX)) == 0)
                return error_setf(reterr, ENODEV,
                                  "mainstay.devices of the configuration does not have '%s'; add "
                                  "it, and restart the agent",
                                  name + strlen(NODE_DEVICE_PREFIX));
        return error_setf(reterr, ENODEV, "no device plugin has registered for the resource %s",
                          name);
}

static int step_container(const DeviceAdmission *admission, const Container *container,
                          device_step_t step, Error *reterr) {
        int r = 0;

        for (size_t i = 0; i < container->resources.limits.extended.n && r >= 0; i++) {
                const ExtendedResource *limit = &container->resources.limits.extended.items[i];
                DeviceRequest request = {
                        .manager = admission->manager,
                        .pod = admission->pod,
                        .container = container,
                        .resource = device_manager_find_resource(admission->manager, limit->name),
                        .n = (size_t) MAX(limit->amount.value, 0),
                };

                if (request.n == 0 || is_cdi_resource(limit->name))
                        continue;
                if (request.resource)
                        r = explain_refusal(&request, step(&request, reterr), reterr);
                else if (admission->must_exist)
                        r = refuse_unknown(limit->name, reterr);
        }
        return r;
}

static int step_containers(const DeviceAdmission *admission, device_step_t step, Error *reterr) {
        const Container *container;
        int r = 0;

        pod_foreach_container(container, &admission->pod->spec) {
                r = step_container(admission, container, step, reterr);
                if (r < 0)
                        break;
        }
        return r;
}

static bool is_unsaved(const DeviceManager *manager, const char *uid) {
        for (size_t i = 0; i < manager->ledger.allocations.n; i++)
                if (streq(manager->ledger.allocations.items[i].uid, uid) &&
                    !manager->ledger.allocations.items[i].is_saved)
                        return true;
        return false;
}

static void mark_saved(DeviceManager *manager, const char *uid) {
        for (size_t i = 0; i < manager->ledger.allocations.n; i++)
                if (streq(manager->ledger.allocations.items[i].uid, uid))
                        manager->ledger.allocations.items[i].is_saved = true;
}

int device_manager_admit(DeviceManager *manager, const Pod *pod, bool must_exist, Error *reterr) {
        const DeviceAdmission admission = { manager, pod, must_exist };
        const char *uid = pod->metadata.uid;
        int r = step_containers(&admission, check_free_devices, reterr);

        if (r >= 0)
                r = step_containers(&admission, admit_resource, reterr);
        if (r >= 0 && is_unsaved(manager, uid)) {
                r = device_manager_save(manager, reterr);
                DIE_AT("devices.saved");
                if (r >= 0)
                        mark_saved(manager, uid);
        }
        /* A pod that waits for one resource must not keep other resources from pods that could
         * start. Waiting pods are not notified, because the choice of this pod existed only during
         * the calls of its providers. */
        if (r < 0 && r != -EINPROGRESS && device_ledger_remove_pod(&manager->ledger, uid))
                (void) device_manager_save(manager, NULL);
        return r;
}

/* ---- starts ---- */

static int prepare_resource(DeviceManager *manager, DeviceAllocation *allocation, Error *reterr) {
        const DeviceResource *resource =
                device_manager_find_resource(manager, allocation->resource);
        int r;

        if (allocation->start != START_NONE)
                return allocation->start == START_PENDING ? -EINPROGRESS : 0;
        if (!resource || !resource->is_registered)
                return error_setf(reterr, ENODEV,
                                  "endpoint not found in cache for a registered resource: %s",
                                  allocation->resource);
        if (!resource->provider.prepares_start)
                return 0;
        if (!resource->provider.ops)
                return error_setf(reterr, ENODEV, "endpoint %s has been stopped",
                                  allocation->resource);
        allocation->start = START_PENDING;
        allocation->start_call = next_call(manager);
        r = resource->provider.ops->prepare_start(resource->provider.userdata,
                                                  allocation->start_call, allocation->resource,
                                                  allocation->ids, reterr);
        if (r == -EINPROGRESS)
                return r;
        allocation->start_call = 0;
        allocation->start = START_PREPARED;
        return r;
}

/* The next start will have to be prepared again. */
static int finish_start(const DeviceManager *manager, const char *uid, const char *container, int r,
                        Error *reterr) {
        for (size_t i = 0; i < manager->ledger.allocations.n; i++) {
                DeviceAllocation *allocation = &manager->ledger.allocations.items[i];

                if (!streq(allocation->uid, uid) || !streq(allocation->container, container))
                        continue;
                if (allocation->start == START_FAILED && r >= 0)
                        r = error_setf(reterr, EREMOTEIO,
                                       "device plugin PreStartContainer rpc failed with err: %s",
                                       strna(allocation->error));
                allocation->start = START_NONE;
                allocation->start_call = 0;
        }
        return r;
}

int device_manager_prepare_start(DeviceManager *manager, const char *uid, const char *container,
                                 Error *reterr) {
        bool is_pending = false;
        int r = 0;

        for (size_t i = 0; i < manager->ledger.allocations.n && r >= 0; i++) {
                DeviceAllocation *allocation = &manager->ledger.allocations.items[i];

                if (!streq(allocation->uid, uid) || !streq(allocation->container, container) ||
                    allocation->state != ALLOCATION_DONE)
                        continue;
                r = prepare_resource(manager, allocation, reterr);
                if (r == -EINPROGRESS) {
                        is_pending = true;
                        r = 0;
                }
        }
        if (r >= 0 && is_pending)
                return -EINPROGRESS;
        return finish_start(manager, uid, container, r, reterr);
}
