/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/device.h"

#include "common/array.h"
#include "common/strv.h"

#include <errno.h>
#include <stdlib.h>

void device_list_done(DeviceList *list) {
        for (size_t i = 0; i < list->n; i++) {
                free(list->items[i].id);
                free(list->items[i].numa_nodes.items);
        }
        free(list->items);
        *list = (DeviceList){ 0 };
}

void device_edits_done(DeviceEdits *edits) {
        string_map_done(&edits->env);
        string_map_done(&edits->annotations);
        for (size_t i = 0; i < edits->mounts.n; i++) {
                free(edits->mounts.items[i].container_path);
                free(edits->mounts.items[i].host_path);
        }
        free(edits->mounts.items);
        for (size_t i = 0; i < edits->files.n; i++) {
                free(edits->files.items[i].container_path);
                free(edits->files.items[i].host_path);
                free(edits->files.items[i].permissions);
        }
        free(edits->files.items);
        strv_free(edits->cdi_devices);
        *edits = (DeviceEdits){ 0 };
}

static int merge_pairs(StringMap *map, const StringMap *more) {
        for (size_t i = 0; i < more->n; i++)
                if (!string_map_get(map, more->items[i].key) &&
                    string_map_set(map, more->items[i].key, more->items[i].value) < 0)
                        return -ENOMEM;
        return 0;
}

static bool has_mount_at(const DeviceEdits *edits, const char *path) {
        for (size_t i = 0; i < edits->mounts.n; i++)
                if (streq_ptr(edits->mounts.items[i].container_path, path))
                        return true;
        return false;
}

static bool has_file_at(const DeviceEdits *edits, const char *path) {
        for (size_t i = 0; i < edits->files.n; i++)
                if (streq_ptr(edits->files.items[i].container_path, path))
                        return true;
        return false;
}

static int add_mount_copy(DeviceEdits *edits, const DeviceMount *from) {
        DeviceMount *mount = ARRAY_APPEND(edits->mounts.items, edits->mounts.n);

        if (!mount)
                return -ENOMEM;
        mount->is_read_only = from->is_read_only;
        mount->container_path = strdup(strna(from->container_path));
        mount->host_path = strdup(strna(from->host_path));
        return mount->container_path && mount->host_path ? 0 : -ENOMEM;
}

static int add_file_copy(DeviceEdits *edits, const DeviceFile *from) {
        DeviceFile *file = ARRAY_APPEND(edits->files.items, edits->files.n);

        if (!file)
                return -ENOMEM;
        file->is_live = from->is_live;
        file->container_path = strdup(strna(from->container_path));
        file->host_path = strdup(strna(from->host_path));
        file->permissions = strdup(strna(from->permissions));
        return file->container_path && file->host_path && file->permissions ? 0 : -ENOMEM;
}

int device_edits_merge(DeviceEdits *edits, const DeviceEdits *more) {
        int r = merge_pairs(&edits->env, &more->env);

        if (r >= 0)
                r = merge_pairs(&edits->annotations, &more->annotations);
        for (size_t i = 0; i < more->mounts.n && r >= 0; i++)
                if (!has_mount_at(edits, more->mounts.items[i].container_path))
                        r = add_mount_copy(edits, &more->mounts.items[i]);
        for (size_t i = 0; i < more->files.n && r >= 0; i++)
                if (!has_file_at(edits, more->files.items[i].container_path))
                        r = add_file_copy(edits, &more->files.items[i]);
        for (size_t i = 0; more->cdi_devices && more->cdi_devices[i] && r >= 0; i++)
                if (!strv_contains(edits->cdi_devices, more->cdi_devices[i]))
                        r = strv_append(&edits->cdi_devices, more->cdi_devices[i]);
        return r;
}

void node_devices_list_done(NodeDevicesList *list) {
        for (size_t i = 0; i < list->n; i++)
                free(list->items[i].name);
        free(list->items);
        *list = (NodeDevicesList){ 0 };
}

void resource_status_list_done(ResourceStatusList *list) {
        for (size_t i = 0; i < list->n; i++) {
                for (size_t j = 0; j < list->items[i].resources.n; j++)
                        free(list->items[i].resources.items[j].id);
                free(list->items[i].resources.items);
                free(list->items[i].name);
        }
        free(list->items);
        *list = (ResourceStatusList){ 0 };
}
