/* SPDX-License-Identifier: Apache-2.0 */
/* The format: a line "mainstay-devices 1", and one JSON object: {"boot": id, "resources": [name…],
 * "allocations": [{"pod", "container", "resource", "ids", "env", "mounts", "files", "annotations",
 * "cdiDevices"}…]}. Members without content are omitted. */

#include "agent/devices/device-manager-private.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/strv.h"
#include "common/text.h"

#include <errno.h>
#include <stdlib.h>

static const char header[] = "mainstay-devices 1\n";

/* ---- printing ---- */

static json_t *print_strings(char *const *strv) {
        json_t *array = json_array();

        for (size_t i = 0; strv && strv[i]; i++)
                (void) json_array_append_new(array, json_string(strv[i]));
        return array;
}

static json_t *print_map(const StringMap *map) {
        json_t *object = json_object();

        for (size_t i = 0; i < map->n; i++)
                (void) json_object_set_new(object, map->items[i].key,
                                           json_string(strna(map->items[i].value)));
        return object;
}

static json_t *print_mounts(const DeviceEdits *edits) {
        json_t *array = json_array();

        for (size_t i = 0; i < edits->mounts.n; i++) {
                const DeviceMount *mount = &edits->mounts.items[i];

                (void) json_array_append_new(array, json_pack("{s:s, s:s, s:b}", "containerPath",
                                                              mount->container_path, "hostPath",
                                                              mount->host_path, "readOnly",
                                                              (int) mount->is_read_only));
        }
        return array;
}

static json_t *print_files(const DeviceEdits *edits) {
        json_t *array = json_array();

        for (size_t i = 0; i < edits->files.n; i++) {
                const DeviceFile *file = &edits->files.items[i];

                (void) json_array_append_new(array, json_pack("{s:s, s:s, s:s}", "containerPath",
                                                              file->container_path, "hostPath",
                                                              file->host_path, "permissions",
                                                              file->permissions));
        }
        return array;
}

static json_t *print_allocation(const DeviceAllocation *allocation) {
        const DeviceEdits *edits = &allocation->edits;

        return json_pack("{s:s, s:b, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "pod",
                         allocation->uid, "unchecked", (int) allocation->is_old, "container",
                         allocation->container, "resource", allocation->resource, "ids",
                         print_strings(allocation->ids), "env", print_map(&edits->env), "mounts",
                         print_mounts(edits), "files", print_files(edits), "annotations",
                         print_map(&edits->annotations), "cdiDevices",
                         print_strings(edits->cdi_devices));
}

char *device_checkpoint_print(const DeviceManager *manager) {
        unsigned failed = json_failed_allocations();
        cleanup_json json_t *json =
                json_pack("{s:s, s:[], s:[]}", "boot", strna(manager->config.boot_id), "resources",
                          "allocations");
        json_t *resources = json_object_get(json, "resources");
        json_t *allocations = json_object_get(json, "allocations");
        cleanup_free char *text = NULL;

        for (size_t i = 0; i < manager->resources.n; i++)
                if (manager->resources.items[i].is_registered)
                        (void) json_array_append_new(resources,
                                                     json_string(manager->resources.items[i].name));
        for (size_t i = 0; i < manager->ledger.allocations.n; i++)
                if (manager->ledger.allocations.items[i].state == ALLOCATION_DONE)
                        (void) json_array_append_new(
                                allocations,
                                print_allocation(&manager->ledger.allocations.items[i]));
        text = json && failed == json_failed_allocations() ? json_to_text(json, JSON_COMPACT)
                                                           : NULL;
        return text ? text_format("%s%s\n", header, text) : NULL;
}

/* ---- parsing ---- */

static int parse_map(json_t *object, StringMap *map) {
        const char *key;
        json_t *value;

        json_object_foreach(object, key, value) {
                if (!json_is_string(value))
                        return -EBADMSG;
                if (string_map_set(map, key, json_string_value(value)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int parse_mount(json_t *json, DeviceEdits *edits) {
        const char *container_path, *host_path;
        int is_read_only;
        DeviceMount *mount;

        if (json_unpack(json, "{s:s, s:s, s:b}", "containerPath", &container_path, "hostPath",
                        &host_path, "readOnly", &is_read_only) < 0)
                return -EBADMSG;
        mount = ARRAY_APPEND(edits->mounts.items, edits->mounts.n);
        if (!mount)
                return -ENOMEM;
        mount->container_path = strdup(container_path);
        mount->host_path = strdup(host_path);
        mount->is_read_only = is_read_only;
        return mount->container_path && mount->host_path ? 0 : -ENOMEM;
}

static int parse_file(json_t *json, DeviceEdits *edits) {
        const char *container_path, *host_path, *permissions;
        DeviceFile *file;

        if (json_unpack(json, "{s:s, s:s, s:s}", "containerPath", &container_path, "hostPath",
                        &host_path, "permissions", &permissions) < 0)
                return -EBADMSG;
        file = ARRAY_APPEND(edits->files.items, edits->files.n);
        if (!file)
                return -ENOMEM;
        file->container_path = strdup(container_path);
        file->host_path = strdup(host_path);
        file->permissions = strdup(permissions);
        return file->container_path && file->host_path && file->permissions ? 0 : -ENOMEM;
}

static int parse_edits(json_t *json, DeviceEdits *edits) {
        json_t *item;
        size_t i;
        int r = parse_map(json_object_get(json, "env"), &edits->env);

        if (r >= 0)
                r = parse_map(json_object_get(json, "annotations"), &edits->annotations);
        if (r >= 0)
                r = json_append_texts(json_object_get(json, "cdiDevices"), &edits->cdi_devices);
        json_array_foreach(json_object_get(json, "mounts"), i, item) {
                if (r >= 0)
                        r = parse_mount(item, edits);
        }
        json_array_foreach(json_object_get(json, "files"), i, item) {
                if (r >= 0)
                        r = parse_file(item, edits);
        }
        return r;
}

static int parse_allocation(DeviceManager *manager, json_t *json, bool is_old) {
        const char *uid, *container, *resource;
        DeviceAllocation *allocation;
        json_t *ids;
        int r;

        if (json_unpack(json, "{s:s, s:s, s:s, s:o}", "pod", &uid, "container", &container,
                        "resource", &resource, "ids", &ids) < 0)
                return -EBADMSG;
        allocation = device_ledger_add(&manager->ledger, uid, container, resource);
        if (!allocation || !device_manager_make_resource(manager, resource))
                return -ENOMEM;
        allocation->state = ALLOCATION_DONE;
        allocation->is_saved = true;
        allocation->is_old = is_old || json_is_true(json_object_get(json, "unchecked"));
        r = json_append_texts(ids, &allocation->ids);
        return r < 0 ? r : parse_edits(json, &allocation->edits);
}

static int parse_resource(DeviceManager *manager, const json_t *json) {
        DeviceResource *resource;

        if (!json_is_string(json))
                return -EBADMSG;
        resource = device_manager_make_resource(manager, json_string_value(json));
        if (!resource)
                return -ENOMEM;
        resource->is_registered = true;
        return 0;
}

int device_checkpoint_parse(DeviceManager *manager, const char *text) {
        cleanup_json json_t *json = NULL;
        json_t *item;
        bool is_old;
        size_t i;
        int r;

        if (strncmp(text, header, strlen(header)) != 0)
                return -EBADMSG;
        text += strlen(header);
        r = json_parse_text(text, strlen(text), 0, &json, NULL);
        if (r < 0)
                return r;
        is_old = !streq(strna(json_text(json, "boot")), strna(manager->config.boot_id));
        json_array_foreach(json_object_get(json, "resources"), i, item) {
                if (r >= 0)
                        r = parse_resource(manager, item);
        }
        json_array_foreach(json_object_get(json, "allocations"), i, item) {
                if (r >= 0)
                        r = parse_allocation(manager, item, is_old);
        }
        return r;
}
