/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-devices/node-devices.h"

#include "agent/node-devices/device-facts.h"
#include "agent/node-devices/device-slots.h"
#include "agent/node-devices/device-watch.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/dump.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <errno.h>
#include <stdlib.h>

/* A device that is present and matches. */
typedef struct PresentDevice {
        char *syspath;
        char *identity;
        char *node;
        uint64_t number;
        bool is_listed; /* the current enumeration has found it */
} PresentDevice;

typedef struct NodeDeviceResource {
        const NodeDeviceConfig *config;
        char *name; /* "mainstay.dev/tty" */
        LIST_OF(PresentDevice) devices;
} NodeDeviceResource;

struct NodeDeviceProvider {
        DeviceManager *manager;
        LIST_OF(NodeDeviceResource) resources;
        char **subsystems; /* NULL: all */
        DeviceWatch *watch;
        bool is_started;  /* the first enumeration has ended */
        bool is_updating; /* the manager's callbacks are caused by this code */
};

static NodeDeviceResource *find_resource(NodeDeviceProvider *provider, const char *name) {
        for (size_t i = 0; i < provider->resources.n; i++)
                if (streq(provider->resources.items[i].name, name))
                        return &provider->resources.items[i];
        return NULL;
}

static void present_device_done(PresentDevice *device) {
        free(device->syspath);
        free(device->identity);
        free(device->node);
}

/* ---- the devices for the device manager ---- */

static int list_identities(const NodeDeviceResource *resource, char ***ret) {
        for (size_t i = 0; i < resource->devices.n; i++)
                if (!strv_contains(*ret, resource->devices.items[i].identity) &&
                    strv_append(ret, resource->devices.items[i].identity) < 0)
                        return -ENOMEM;
        return 0;
}

static int publish_resource(NodeDeviceProvider *provider, const NodeDeviceResource *resource) {
        cleanup_with(device_slots_done) DeviceSlots slots = { 0 };
        cleanup_strv char **present = NULL, **held = NULL;
        int r = list_identities(resource, &present);

        if (r >= 0)
                r = device_manager_list_held(provider->manager, resource->name, &held);
        if (r >= 0)
                r = device_slots_compute(resource->config, present, held, &slots);
        for (size_t i = 0; i < slots.renamed.n && r >= 0; i++)
                r = device_manager_rename_device(provider->manager, resource->name,
                                                 slots.renamed.items[i].key,
                                                 slots.renamed.items[i].value);
        if (r >= 0)
                r = device_manager_set_devices_take(provider->manager, resource->name, provider,
                                                    &slots.devices);
        return r;
}

/* This is done even if the list is the same, because a device may have another node. */
static void update_resource(NodeDeviceProvider *provider, const NodeDeviceResource *resource) {
        int r;

        if (!provider->is_started)
                return;
        provider->is_updating = true;
        r = publish_resource(provider, resource);
        provider->is_updating = false;
        if (r < 0)
                (void) log_warning_errno(r, "Cannot update the devices of %s", resource->name);
        device_manager_refresh(provider->manager, resource->name);
}

/* ---- devices that appear and disappear ---- */

static PresentDevice *find_present(NodeDeviceResource *resource, const char *syspath) {
        for (size_t i = 0; i < resource->devices.n; i++)
                if (streq(resource->devices.items[i].syspath, syspath))
                        return &resource->devices.items[i];
        return NULL;
}

static bool has_identity(const NodeDeviceResource *resource, const char *identity) {
        for (size_t i = 0; i < resource->devices.n; i++)
                if (streq(resource->devices.items[i].identity, identity))
                        return true;
        return false;
}

/* Indistinguishable devices are numbered. */
static char *choose_identity(const NodeDeviceResource *resource, const DeviceFacts *facts) {
        cleanup_free char *identity = NULL;

        if (resource->config->is_grouped)
                return strdup("all");
        identity = device_facts_identity(facts);
        if (!identity || !has_identity(resource, identity))
                return TAKE_PTR(identity);
        for (size_t i = 2;; i++) {
                cleanup_free char *numbered = text_format("%s.%zu", identity, i);

                if (!numbered || !has_identity(resource, numbered))
                        return TAKE_PTR(numbered);
        }
}

static void remove_present(NodeDeviceResource *resource, PresentDevice *device) {
        size_t at = (size_t) (device - resource->devices.items);

        log_info("A device of %s was removed: %s (%s)", resource->name, device->node,
                 device->identity);
        present_device_done(device);
        ARRAY_REMOVE(resource->devices.items, resource->devices.n, at);
}

static int remember_device(NodeDeviceResource *resource, const DeviceFacts *facts) {
        cleanup_free char *identity = choose_identity(resource, facts),
                          *syspath = strdup(facts->syspath), *node = strdup(facts->node);
        PresentDevice *device = identity && syspath && node
                                        ? ARRAY_APPEND(resource->devices.items, resource->devices.n)
                                        : NULL;

        if (!device)
                return -ENOMEM;
        *device = (PresentDevice){ .syspath = TAKE_PTR(syspath),
                                   .identity = TAKE_PTR(identity),
                                   .node = TAKE_PTR(node),
                                   .number = facts->number,
                                   .is_listed = true };
        log_info("A device of %s was added: %s (%s)", resource->name, device->node,
                 device->identity);
        return 0;
}

static void take_facts(NodeDeviceProvider *provider, NodeDeviceResource *resource,
                       const DeviceFacts *facts) {
        PresentDevice *device = find_present(resource, facts->syspath);
        bool matches = device_facts_match(facts, resource->config);

        if (device && matches && streq(device->node, facts->node) &&
            device->number == facts->number) {
                device->is_listed = true;
                return;
        }
        if (device)
                remove_present(resource, device);
        if (matches && remember_device(resource, facts) < 0)
                log_warning("Cannot store the device %s: out of memory", facts->node);
        if (device || matches)
                update_resource(provider, resource);
}

static void on_device_present(DeviceFacts *facts, void *userdata) {
        NodeDeviceProvider *provider = userdata;

        for (size_t i = 0; i < provider->resources.n; i++)
                take_facts(provider, &provider->resources.items[i], facts);
        device_facts_done(facts);
}

static void on_device_gone(const char *syspath, void *userdata) {
        NodeDeviceProvider *provider = userdata;

        for (size_t i = 0; i < provider->resources.n; i++) {
                NodeDeviceResource *resource = &provider->resources.items[i];
                PresentDevice *device = find_present(resource, syspath);

                if (!device)
                        continue;
                remove_present(resource, device);
                update_resource(provider, resource);
        }
}

static void on_devices_listed(void *userdata) {
        NodeDeviceProvider *provider = userdata;

        provider->is_started = true;
        for (size_t i = 0; i < provider->resources.n; i++) {
                NodeDeviceResource *resource = &provider->resources.items[i];

                for (size_t j = resource->devices.n; j-- > 0;) {
                        PresentDevice *device = &resource->devices.items[j];

                        if (!device->is_listed)
                                remove_present(resource, device);
                        else
                                device->is_listed = false;
                }
                update_resource(provider, resource);
        }
}

/* ---- the provider ---- */

static int allocate_nothing(void *userdata, uint64_t call, const char *resource, char *const *ids,
                            DeviceEdits *ret, Error *reterr) {
        return 0;
}

static bool is_present(const NodeDeviceResource *resource, const char *id) {
        for (size_t i = 0; i < resource->devices.n; i++)
                if (device_slot_is_of(id, resource->devices.items[i].identity))
                        return true;
        return false;
}

static int check_presence(void *userdata, uint64_t call, const char *name, char *const *ids,
                          Error *reterr) {
        NodeDeviceProvider *provider = userdata;
        const NodeDeviceResource *resource = find_resource(provider, name);

        for (size_t i = 0; resource && ids && ids[i]; i++)
                if (!resource->config->is_optional && !is_present(resource, ids[i]))
                        return error_setf(reterr, ENODEV,
                                          "the device %s of %s is not present: plug it in, or set "
                                          "'optional: true' for '%s' in mainstay.devices",
                                          ids[i], name, resource->config->name);
        return 0;
}

static const DeviceProviderOps provider_ops = { .allocate = allocate_nothing,
                                                .prepare_start = check_presence };

/* The first device has the path itself, the next ones have "<path>1", "<path>2". */
static char *container_path_of(const NodeDeviceConfig *config, const char *node, size_t index) {
        if (!config->container_path)
                return strdup(node);
        return index == 0 ? strdup(config->container_path)
                          : text_format("%s%zu", config->container_path, index);
}

static int add_device_node(const NodeDeviceConfig *config, const char *node, size_t index,
                           DeviceEdits *edits) {
        DeviceFile *file = ARRAY_APPEND(edits->files.items, edits->files.n);

        if (!file)
                return -ENOMEM;
        file->is_live = true;
        file->host_path = strdup(node);
        file->container_path = container_path_of(config, node, index);
        file->permissions = strdup(config->mode ? config->mode : "rw");
        return file->host_path && file->container_path && file->permissions ? 0 : -ENOMEM;
}

static int current_edits(void *userdata, const char *name, char *const *ids, DeviceEdits *ret) {
        NodeDeviceProvider *provider = userdata;
        const NodeDeviceResource *resource = find_resource(provider, name);
        int r = 0;

        for (size_t i = 0; resource && ids && ids[i]; i++)
                for (size_t j = 0; j < resource->devices.n && r >= 0; j++)
                        if (device_slot_is_of(ids[i], resource->devices.items[j].identity))
                                r = add_device_node(resource->config,
                                                    resource->devices.items[j].node, i, ret);
        return r;
}

static char *explain_lack(void *userdata, const char *name) {
        NodeDeviceProvider *provider = userdata;
        const NodeDeviceResource *resource = find_resource(provider, name);
        cleanup_free char *rule = resource ? node_device_describe(resource->config) : NULL;

        if (!rule)
                return NULL;
        if (resource->devices.n == 0)
                return text_format("the node has no device with %s: plug it in, or set 'optional: "
                                   "true' for '%s' in mainstay.devices",
                                   rule, resource->config->name);
        return text_format("other pods have the devices with %s: plug in another one, or set "
                           "'shared: true' for '%s' in mainstay.devices",
                           rule, resource->config->name);
}

static const LiveDeviceOps live_ops = { .current_edits = current_edits, .explain = explain_lack };

static int register_configured(NodeDeviceProvider *provider, const NodeDeviceConfig *config) {
        NodeDeviceResource *resource =
                ARRAY_APPEND(provider->resources.items, provider->resources.n);

        if (!resource)
                return -ENOMEM;
        resource->config = config;
        resource->name = text_format(NODE_DEVICE_PREFIX "%s", config->name);
        if (!resource->name)
                return -ENOMEM;
        return device_manager_register(provider->manager, resource->name,
                                       &(DeviceProvider){ .ops = &provider_ops,
                                                          .live = &live_ops,
                                                          .userdata = provider,
                                                          .prepares_start = true });
}

/* If each rule names a subsystem, events of other subsystems do not wake the agent. */
static int choose_subsystems(NodeDeviceProvider *provider) {
        for (size_t i = 0; i < provider->resources.n; i++) {
                const DeviceMatch *match = provider->resources.items[i].config->match;

                if (!match || !match->subsystem) {
                        provider->subsystems = strv_free(provider->subsystems);
                        return 0;
                }
                if (!strv_contains(provider->subsystems, match->subsystem) &&
                    strv_append(&provider->subsystems, match->subsystem) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int node_device_provider_new(sd_event *event, const NodeDeviceConfigs *configs,
                             DeviceManager *manager, NodeDeviceProvider **ret) {
        cleanup_with(node_device_provider_freep) NodeDeviceProvider *provider = NULL;
        int r = 0;

        *ret = NULL;
        if (configs->n == 0)
                return 0;
        provider = calloc(1, sizeof(*provider));
        if (!provider)
                return -ENOMEM;
        provider->manager = manager;
        for (size_t i = 0; i < configs->n && r >= 0; i++)
                r = register_configured(provider, &configs->items[i]);
        if (r >= 0)
                r = choose_subsystems(provider);
        if (r >= 0)
                r = device_watch_new(&(DeviceWatchConfig){ .event = event,
                                                           .subsystems = provider->subsystems,
                                                           .on_present = on_device_present,
                                                           .on_gone = on_device_gone,
                                                           .on_listed = on_devices_listed,
                                                           .userdata = provider },
                                     &provider->watch);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(provider);
        return 0;
}

NodeDeviceProvider *node_device_provider_free(NodeDeviceProvider *provider) {
        if (!provider)
                return NULL;
        device_watch_free(provider->watch);
        for (size_t i = 0; i < provider->resources.n; i++) {
                NodeDeviceResource *resource = &provider->resources.items[i];

                for (size_t j = 0; j < resource->devices.n; j++)
                        present_device_done(&resource->devices.items[j]);
                free(resource->devices.items);
                free(resource->name);
        }
        free(provider->resources.items);
        strv_free(provider->subsystems);
        free(provider);
        return NULL;
}

void node_device_provider_on_released(NodeDeviceProvider *provider) {
        if (!provider || provider->is_updating)
                return;
        for (size_t i = 0; i < provider->resources.n; i++)
                update_resource(provider, &provider->resources.items[i]);
}

void node_device_provider_dump(const NodeDeviceProvider *provider, FILE *out) {
        if (provider)
                dump_section(out, "devices of the node");
        for (size_t i = 0; provider && i < provider->resources.n; i++) {
                const NodeDeviceResource *resource = &provider->resources.items[i];

                dump_line(out, 1, "resource: %s", resource->name);
                for (size_t j = 0; j < resource->devices.n; j++)
                        dump_line(out, 2, "device: %s, %s", resource->devices.items[j].identity,
                                  resource->devices.items[j].node);
        }
}
