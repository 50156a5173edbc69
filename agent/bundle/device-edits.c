/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/bundle/device-edits.h"

#include "agent/bundle/mount-list.h"
#include "agent/bundle/resolved-security.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/strv.h"
#include "common/text.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

int device_edit_environment(const BundleConfig *config, const VariableSet *variables,
                            VariableSet *environment) {
        const DeviceEdits *edits = config->device_edits;
        int r = 0;

        for (size_t i = 0; edits && i < edits->env.n && r >= 0; i++) {
                const KeyValue *variable = &edits->env.items[i];

                if (!variable_set_find(variables, variable->key, strlen(variable->key)))
                        r = variable_set_put(environment, variable->key, strna(variable->value));
        }
        return r;
}

static void add_bind_mount(json_t *mounts, const char *destination, const char *source,
                           bool is_read_only) {
        json_array_append_new(mounts,
                              json_pack("{s:s, s:s, s:s, s:[s, s, s]}", "destination", destination,
                                        "type", "bind", "source", source, "options", "rbind",
                                        "rprivate", is_read_only ? "ro" : "rw"));
}

/* A runtime cannot create device nodes in a user namespace, so it binds those of the node, and only
 * at the same path. */
static bool binds_devices(const RuntimeSpecInput *input) {
        return input->users;
}

int device_edit_mounts(const RuntimeSpecInput *input, json_t *mounts) {
        const DeviceEdits *edits = input->config->device_edits;

        for (size_t i = 0; edits && i < edits->mounts.n; i++) {
                cleanup_free char *source = shim_mount_target(input, "device-mounts", i);

                if (!source)
                        return -ENOMEM;
                add_bind_mount(mounts, edits->mounts.items[i].container_path, source,
                               edits->mounts.items[i].is_read_only);
        }
        for (size_t i = 0; edits && binds_devices(input) && i < edits->files.n; i++)
                add_bind_mount(mounts, edits->files.items[i].container_path,
                               edits->files.items[i].host_path, false);
        return 0;
}

int device_mounts_fstab(const RuntimeSpecInput *input, char **ret) {
        const DeviceEdits *edits = input->config->device_edits;
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        int r = out ? 0 : -ENOMEM;

        for (size_t i = 0; edits && i < edits->mounts.n && r >= 0; i++) {
                cleanup_free char *target = shim_mount_target(input, "device-mounts", i);

                if (target)
                        fstab_put_host_path(out, edits->mounts.items[i].host_path, target,
                                            "devices", "");
                r = target ? 0 : -ENOMEM;
        }
        if (out)
                text = memstream_finish(out, &text);
        if (r < 0 || !text) {
                free(text);
                return -ENOMEM;
        }
        *ret = text;
        return 0;
}

/* ---- devices that appear and disappear ---- */

int device_edits_print_live(const DeviceEdits *edits, char ***ret) {
        cleanup_strv char **lines = NULL;

        for (size_t i = 0; i < edits->files.n; i++) {
                const DeviceFile *file = &edits->files.items[i];
                struct stat st;

                if (!file->is_live || stat(file->host_path, &st) < 0 ||
                    !(S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)))
                        continue;
                if (strv_appendf(&lines, "%c %u:%u %s %o %u:%u %s %s",
                                 S_ISCHR(st.st_mode) ? 'c' : 'b', major(st.st_rdev),
                                 minor(st.st_rdev), file->permissions, st.st_mode & 0777U,
                                 st.st_uid, st.st_gid, file->host_path, file->container_path) < 0)
                        return -ENOMEM;
        }
        *ret = TAKE_PTR(lines);
        return 0;
}

/* The shim replaces the devices that the container has when it starts. */
static int add_live_devices(const DeviceEdits *edits, json_t *document) {
        cleanup_strv char **lines = NULL;
        json_t *own = json_object_get(document, "mainstay"), *list;
        int r = device_edits_print_live(edits, &lines);

        if (r < 0 || !lines)
                return r;
        if (!own) {
                json_object_set_new(document, "mainstay", json_object());
                own = json_object_get(document, "mainstay");
        }
        json_object_set_new(own, "devices", json_array());
        list = json_object_get(own, "devices");
        strv_foreach(line, lines)
                json_array_append_new(list, json_string(*line));
        return 0;
}

/* ---- device nodes ---- */

/* The lists of config.json, and one device of the edits. */
typedef struct DeviceAddition {
        json_t *devices; /* linux.devices; NULL: the device is bound */
        json_t *user;    /* process.user, which owns a hot-plug device */
        json_t *rules;   /* linux.resources.devices */
        const char *access;
} DeviceAddition;

static bool has_device_at(const json_t *devices, const char *path) {
        const json_t *device;
        size_t i;

        json_array_foreach(devices, i, device) {
                if (streq(strna(json_text(device, "path")), path))
                        return true;
        }
        return false;
}

static void add_device_rule(const DeviceAddition *addition, const json_t *device) {
        json_array_append_new(addition->rules, json_pack("{s:b, s:O, s:O, s:O, s:s}", "allow", 1,
                                                         "type", json_object_get(device, "type"),
                                                         "major", json_object_get(device, "major"),
                                                         "minor", json_object_get(device, "minor"),
                                                         "access", addition->access));
}

static void add_edited_node(const DeviceAddition *addition, json_t *device) {
        const char *path = json_text(device, "path");

        if (addition->devices && !has_device_at(addition->devices, strna(path)))
                json_array_append(addition->devices, device);
        add_device_rule(addition, device);
}

/* All devices below a directory of the node, as in containerd. */
static int add_device_files_below(const DeviceAddition *addition, const DeviceFile *file) {
        cleanup_json json_t *devices = node_devices(file->host_path);
        size_t prefix = strlen(file->host_path), i;
        json_t *device;

        json_array_foreach(devices, i, device) {
                const char *path = json_text(device, "path");
                cleanup_free char *inside =
                        text_format("%s%s", file->container_path, strna(path) + prefix);

                if (!inside)
                        return -ENOMEM;
                json_object_set_new(device, "path", json_string(inside));
                add_edited_node(addition, device);
        }
        return 0;
}

/* The node is the container's own, so its user can be the owner. */
static void give_to_user(const DeviceAddition *addition, json_t *device) {
        json_t *uid = json_object_get(addition->user, "uid"),
               *gid = json_object_get(addition->user, "gid");

        if (json_integer_value(uid) == 0 && json_integer_value(gid) == 0)
                return;
        json_object_set(device, "uid", uid);
        json_object_set(device, "gid", gid);
}

static int add_device_file(const DeviceAddition *addition, const DeviceFile *file, Error *reterr) {
        cleanup_json json_t *device = NULL;
        struct stat st;

        if (stat(file->host_path, &st) < 0) {
                if (file->is_live && errno == ENOENT) /* just unplugged */
                        return 0;
                return error_setf(reterr, errno,
                                  "error gathering device information while adding custom device "
                                  "\"%s\": %s",
                                  file->host_path, strerror(errno));
        }
        if (S_ISDIR(st.st_mode))
                return add_device_files_below(addition, file);
        if (!S_ISCHR(st.st_mode) && !S_ISBLK(st.st_mode))
                return error_setf(reterr, ENODEV,
                                  "error gathering device information while adding custom device "
                                  "\"%s\": not a device node",
                                  file->host_path);
        device = json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "path", file->container_path,
                           "type", S_ISCHR(st.st_mode) ? "c" : "b", "major",
                           (json_int_t) major(st.st_rdev), "minor", (json_int_t) minor(st.st_rdev),
                           "fileMode", (json_int_t) (st.st_mode & 07777), "uid",
                           (json_int_t) st.st_uid, "gid", (json_int_t) st.st_gid);
        if (device && file->is_live)
                give_to_user(addition, device);
        if (device)
                add_edited_node(addition, device);
        return 0;
}

static json_t *list_in(json_t *object, const char *key) {
        if (!json_object_get(object, key))
                json_object_set_new(object, key, json_array());
        return json_object_get(object, key);
}

int device_edit_runtime_spec(const RuntimeSpecInput *input, json_t *document, Error *reterr) {
        const DeviceEdits *edits = input->config->device_edits;
        json_t *section = json_object_get(document, "linux"),
               *annotations = json_object_get(document, "annotations");
        int r = 0;

        for (size_t i = 0; edits && i < edits->annotations.n; i++)
                if (!json_object_get(annotations, edits->annotations.items[i].key))
                        json_object_set_new(annotations, edits->annotations.items[i].key,
                                            json_string(edits->annotations.items[i].value));
        for (size_t i = 0; edits && i < edits->files.n && r >= 0; i++) {
                const DeviceFile *file = &edits->files.items[i];
                DeviceAddition addition = {
                        .devices = binds_devices(input) ? NULL : list_in(section, "devices"),
                        .rules = list_in(json_object_get(section, "resources"), "devices"),
                        .user = json_object_get(json_object_get(document, "process"), "user"),
                        .access = file->permissions[0] ? file->permissions : "rwm",
                };

                r = add_device_file(&addition, file, reterr);
        }
        return r >= 0 && edits ? add_live_devices(edits, document) : r;
}
