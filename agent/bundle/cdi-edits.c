/* SPDX-License-Identifier: Apache-2.0 */

/* Follows the rules of CDI's own library: all edits of a file come before those of its first
 * device; an environment variable, a device node or a mount replaces one with the same name or
 * path; missing fields of a device node are taken from the node; mounts are then sorted by depth.
 */

#include "agent/bundle/cdi-edits.h"

#include "agent/bundle/mount-list.h"
#include "agent/bundle/pod-paths.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/strv.h"
#include "common/text.h"

#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define FAILED "CDI device injection failed: "

/* The edits to apply, in order. Borrowed. */
typedef LIST_OF(const CdiEdits *) EditsList;

/* ---- which devices ---- */

int pod_check_cdi(const BundleConfig *config, const Pod *pod, Error *reterr) {
        const KeyValue *annotation = pod_cdi_annotation(pod);

        if (!annotation || !config->refuses_api_cdi ||
            pod->metadata.source != OBJECT_SOURCE_APISERVER)
                return 0;
        return error_setf(
                reterr, EPERM,
                "this node provides no devices for the annotation '%.100s' of a pod of an "
                "API server, because mainstay.cdiForApiPods is not set",
                annotation->key);
}

/* An annotation may have been added after the pod had started. */
static int list_cdi_names(const RuntimeSpecInput *input, char ***ret, Error *reterr) {
        cleanup_strv char **names = NULL, **of_pod = NULL;
        int r = pod_check_cdi(input->config, input->pod, reterr);

        if (r >= 0)
                r = container_cdi_names(input->pod, input->container, &of_pod, reterr);
        if (r < 0)
                return r == -EINVAL
                               ? error_prefixf(reterr, r, "failed to parse CDI device annotations")
                               : r;
        r = strv_extend(&names, input->config->cdi_names);
        strv_foreach(name, of_pod)
                if (r >= 0 && !strv_contains(names, *name))
                        r = strv_append(&names, *name);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(names);
        return 0;
}

static int find_device(const RuntimeSpecInput *input, const char *name, CdiMatch *ret,
                       Error *reterr) {
        const CdiLookup *lookup = &input->config->cdi;

        if (lookup->find)
                return lookup->find(name, ret, reterr, lookup->userdata);
        return error_setf(reterr, ENOENT, "this node reads no CDI specifications");
}

static int append_edits(EditsList *list, const CdiEdits *edits) {
        const CdiEdits **place = ARRAY_APPEND(list->items, list->n);

        if (!place)
                return -ENOMEM;
        *place = edits;
        return 0;
}

/* The file's own edits, once, and the device's. */
static int append_match(EditsList *list, const CdiMatch *match) {
        int r = 0;

        for (size_t i = 0; i < list->n; i++)
                if (list->items[i] == &match->spec->edits)
                        return append_edits(list, &match->device->edits);
        r = append_edits(list, &match->spec->edits);
        return r < 0 ? r : append_edits(list, &match->device->edits);
}

/* Names every device that cannot be found, with the reason. */
static int refuse_unresolvable(char *const *names, char *const *reasons, Error *reterr) {
        cleanup_free char *joined = text_join(names, ", "), *why = text_join(reasons, "; ");

        if (!joined || !why)
                return -ENOMEM;
        return error_setf(reterr, BUNDLE_DEVICE_MISSING, FAILED "unresolvable CDI devices %s: %s",
                          joined, why);
}

static int collect_edits(const RuntimeSpecInput *input, EditsList *ret, Error *reterr) {
        cleanup_strv char **names = NULL, **missing = NULL, **reasons = NULL;
        int r = list_cdi_names(input, &names, reterr);

        strv_foreach(name, names) {
                cleanup_error Error error = ERROR_NULL;
                CdiMatch match;

                r = find_device(input, *name, &match, &error);
                if (r >= 0)
                        r = append_match(ret, &match);
                else if (r == -ENOENT) {
                        const char *reason = error_message(&error, r);

                        r = strv_append(&missing, *name);
                        if (r >= 0 && !strv_contains(reasons, reason))
                                r = strv_append(&reasons, reason);
                }
                if (r < 0)
                        return r;
        }
        return r < 0 || !missing ? r : refuse_unresolvable(missing, reasons, reterr);
}

/* ---- arrays of the document ---- */

/* The member with that name of an object, which is added if it is missing. */
static json_t *member(json_t *object, const char *key, json_t *(*make)(void) ) {
        json_t *value = json_object_get(object, key);

        if (!value) {
                json_object_set_new(object, key, make());
                value = json_object_get(object, key);
        }
        return value;
}

static json_t *strings(char *const *strv) {
        json_t *array = json_array();

        for (size_t i = 0; strv && strv[i]; i++)
                json_array_append_new(array, json_string(strv[i]));
        return array;
}

static void remove_by_text(json_t *array, const char *key, const char *text) {
        for (size_t i = json_array_size(array); i > 0; i--)
                if (streq(strna(json_string_value(
                                  json_object_get(json_array_get(array, i - 1), key))),
                          text))
                        json_array_remove(array, i - 1);
}

/* ---- environment and groups ---- */

static void set_cdi_variable(json_t *env, const char *assignment) {
        size_t n = strcspn(assignment, "=") + 1;

        for (size_t i = 0; i < json_array_size(env); i++)
                if (strncmp(strna(json_string_value(json_array_get(env, i))), assignment, n) == 0) {
                        json_array_set_new(env, i, json_string(assignment));
                        return;
                }
        json_array_append_new(env, json_string(assignment));
}

static void add_group(json_t *groups, int64_t gid) {
        for (size_t i = 0; i < json_array_size(groups); i++)
                if (json_integer_value(json_array_get(groups, i)) == gid)
                        return;
        if (gid > 0)
                json_array_append_new(groups, json_integer(gid));
}

static void edit_process(json_t *process, const CdiEdits *edits) {
        json_t *user = json_object_get(process, "user");

        for (size_t i = 0; edits->env && edits->env[i]; i++)
                set_cdi_variable(member(process, "env", json_array), edits->env[i]);
        for (size_t i = 0; i < edits->additional_gids.n; i++)
                add_group(member(user, "additionalGids", json_array),
                          edits->additional_gids.items[i]);
}

/* ---- device nodes ---- */

/* A device node, with the values that were missing in the file. */
typedef struct ResolvedNode {
        const CdiDeviceNode *node;
        const char *host_path;
        char type;
        int64_t major, minor;
        int64_t mode; /* -1: unknown */
} ResolvedNode;

static char type_of_mode(mode_t mode) {
        return S_ISBLK(mode) ? 'b' : S_ISCHR(mode) ? 'c' : S_ISFIFO(mode) ? 'p' : '\0';
}

static int fill_from_node(ResolvedNode *resolved, const struct stat *st, Error *reterr) {
        char type = type_of_mode(st->st_mode);
        bool is_same = resolved->type == type || (resolved->type == 'u' && type == 'c');

        if (type == '\0')
                return error_setf(reterr, BUNDLE_DEVICE_MISSING, FAILED "%s is not a device node",
                                  resolved->host_path);
        if (resolved->type == '\0')
                resolved->type = type;
        else if (!is_same)
                return error_setf(reterr, BUNDLE_DEVICE_MISSING,
                                  FAILED "%s is a device of type %c, not %c", resolved->host_path,
                                  type, resolved->type);
        if (type != 'p' && resolved->major == 0) {
                resolved->major = major(st->st_rdev);
                resolved->minor = minor(st->st_rdev);
        }
        return 0;
}

static int resolve_node(const CdiDeviceNode *node, ResolvedNode *ret, Error *reterr) {
        ResolvedNode resolved = {
                .node = node,
                .host_path = node->host_path ? node->host_path : node->path,
                .major = node->major.value,
                .minor = node->minor.value,
                .mode = node->file_mode.is_set ? node->file_mode.value & 07777 : -1,
        };
        struct stat st;
        int r = lstat(resolved.host_path, &st) < 0 ? -errno : 0;
        bool is_complete;

        if (node->type)
                resolved.type = node->type[0];
        is_complete = resolved.type && (resolved.major != 0 || resolved.type == 'p');
        if (r < 0 && !is_complete)
                return error_setf(reterr, BUNDLE_DEVICE_MISSING,
                                  FAILED "failed to stat CDI host device \"%s\": %s",
                                  resolved.host_path, strerror(-r));
        if (r >= 0 && resolved.mode < 0)
                resolved.mode = st.st_mode & 07777;
        if (r >= 0 && !is_complete)
                r = fill_from_node(&resolved, &st, reterr);
        if (r < 0 && !is_complete)
                return r;
        *ret = resolved;
        return 0;
}

static void set_owner(json_t *device, const char *key, const OptionalInt *given,
                      const json_t *user) {
        json_int_t own = json_integer_value(json_object_get(user, key));

        if (given->is_set)
                json_object_set_new(device, key, json_integer(given->value));
        else if (own > 0)
                json_object_set_new(device, key, json_integer(own));
}

static json_t *device_section(const ResolvedNode *resolved, const json_t *user) {
        const CdiDeviceNode *node = resolved->node;
        json_t *device =
                json_pack("{s:s, s:s%}", "path", node->path, "type", &resolved->type, (size_t) 1);

        if (resolved->type != 'p') {
                json_object_set_new(device, "major", json_integer(resolved->major));
                json_object_set_new(device, "minor", json_integer(resolved->minor));
        }
        if (resolved->mode >= 0)
                json_object_set_new(device, "fileMode", json_integer(resolved->mode));
        set_owner(device, "uid", &node->uid, user);
        set_owner(device, "gid", &node->gid, user);
        return device;
}

static void allow_device(json_t *section, const ResolvedNode *resolved) {
        const char *access = resolved->node->permissions ? resolved->node->permissions : "rwm";
        json_t *rules = member(member(section, "resources", json_object), "devices", json_array);

        json_array_append_new(rules, json_pack("{s:b, s:s%, s:I, s:I, s:s}", "allow", 1, "type",
                                               &resolved->type, (size_t) 1, "major",
                                               (json_int_t) resolved->major, "minor",
                                               (json_int_t) resolved->minor, "access",
                                               streq(access, "none") ? "" : access));
}

/* Device nodes cannot be created inside a user namespace: the runtime binds the node's, by the path
 * in the container. A device with another path is mounted. */
static void bind_device(json_t *document, const ResolvedNode *resolved) {
        json_t *mounts = member(document, "mounts", json_array);

        remove_by_text(mounts, "destination", resolved->node->path);
        json_array_append_new(mounts, json_pack("{s:s, s:s, s:s, s:[s,s,s]}", "destination",
                                                resolved->node->path, "type", "bind", "source",
                                                resolved->host_path, "options", "bind", "nosuid",
                                                "noexec"));
}

static int edit_devices(const RuntimeSpecInput *input, json_t *document, const CdiEdits *edits,
                        Error *reterr) {
        json_t *section = json_object_get(document, "linux");
        const json_t *user = json_object_get(json_object_get(document, "process"), "user");

        for (size_t i = 0; i < edits->device_nodes.n; i++) {
                const CdiDeviceNode *node = &edits->device_nodes.items[i];
                ResolvedNode resolved;
                json_t *devices;
                int r = resolve_node(node, &resolved, reterr);

                if (r < 0)
                        return r;
                devices = member(section, "devices", json_array);
                remove_by_text(devices, "path", node->path);
                if (input->users && !streq(node->path, resolved.host_path))
                        bind_device(document, &resolved);
                else
                        json_array_append_new(devices, device_section(&resolved, user));
                if (resolved.type == 'b' || resolved.type == 'c')
                        allow_device(section, &resolved);
        }
        return 0;
}

/* ---- mounts ---- */

static bool is_bind_mount(const CdiMount *mount) {
        return streq(strna(mount->type), "bind") || strv_contains(mount->options, "bind") ||
               strv_contains(mount->options, "rbind");
}

/* Only the shim can map the IDs of a mount with every runtime. */
static bool is_bound_by_shim(const RuntimeSpecInput *input, const CdiMount *mount) {
        return input->users && is_bind_mount(mount);
}

static int add_cdi_mount(const RuntimeSpecInput *input, json_t *mounts, const CdiMount *mount,
                         size_t number) {
        cleanup_free char *source = is_bound_by_shim(input, mount)
                                            ? shim_mount_target(input, "cdi", number)
                                            : strdup(mount->host_path);
        json_t *section;

        if (!source)
                return -ENOMEM;
        remove_by_text(mounts, "destination", mount->container_path);
        section = json_pack("{s:s, s:s, s:s*}", "destination", mount->container_path, "source",
                            source, "type", mount->type);
        if (mount->options)
                json_object_set_new(section, "options", strings(mount->options));
        json_array_append_new(mounts, section);
        return 0;
}

static size_t destination_depth(const json_t *mount) {
        cleanup_free char *path = path_clean(strna(json_text(mount, "destination")));
        size_t n = 0;

        for (const char *p = path; p && *p; p++)
                n += *p == '/';
        return n;
}

/* The sort is stable, so mounts of the same depth keep their order. */
static void sort_mounts_by_depth(json_t *document) {
        json_t *mounts = json_object_get(document, "mounts"), *sorted = json_array();

        for (size_t depth = 0;
             json_array_size(sorted) < json_array_size(mounts) && depth < PATH_MAX; depth++)
                for (size_t i = 0; i < json_array_size(mounts); i++)
                        if (destination_depth(json_array_get(mounts, i)) == depth)
                                json_array_append(sorted, json_array_get(mounts, i));
        json_object_set_new(document, "mounts", sorted);
}

/* 'number' counts the mounts of all edits. */
static int edit_mounts(const RuntimeSpecInput *input, json_t *document, const CdiEdits *edits,
                       size_t *number) {
        int r = 0;

        for (size_t i = 0; i < edits->mounts.n && r >= 0; i++)
                r = add_cdi_mount(input, member(document, "mounts", json_array),
                                  &edits->mounts.items[i], (*number)++);
        return r;
}

int cdi_mounts_fstab(const RuntimeSpecInput *input, char **ret, Error *reterr) {
        EditsList list = { 0 };
        char *text = NULL;
        size_t length, number = 0;
        FILE *out = open_memstream(&text, &length);
        int r = out ? 0 : -ENOMEM;

        if (input->users && r >= 0)
                r = collect_edits(input, &list, reterr);
        for (size_t i = 0; i < list.n && r >= 0; i++)
                for (size_t j = 0; j < list.items[i]->mounts.n; j++, number++) {
                        const CdiMount *mount = &list.items[i]->mounts.items[j];
                        cleanup_free char *target = shim_mount_target(input, "cdi", number);

                        if (target && is_bound_by_shim(input, mount))
                                fstab_put_whole(out, mount->host_path, target, "cdi", input->users);
                        r = target ? r : -ENOMEM;
                }
        free(list.items);
        if (out)
                text = memstream_finish(out, &text);
        if (r < 0 || !text) {
                free(text);
                return r < 0 ? r : -ENOMEM;
        }
        *ret = text;
        return 0;
}

/* ---- hooks and resctrl ---- */

static void add_hook(json_t *document, const CdiHook *hook) {
        json_t *hooks = member(document, "hooks", json_object);
        json_t *section = json_pack("{s:s}", "path", hook->path);

        if (hook->args)
                json_object_set_new(section, "args", strings(hook->args));
        if (hook->env)
                json_object_set_new(section, "env", strings(hook->env));
        if (hook->timeout.is_set)
                json_object_set_new(section, "timeout", json_integer(hook->timeout.value));
        json_array_append_new(member(hooks, hook->hook_name, json_array), section);
}

static json_t *intel_rdt_section(const CdiIntelRdt *rdt) {
        json_t *section = json_pack("{s:s*, s:s*, s:s*}", "closID", rdt->clos_id, "l3CacheSchema",
                                    rdt->l3_cache_schema, "memBwSchema", rdt->mem_bw_schema);

        if (rdt->schemata)
                json_object_set_new(section, "schemata", strings(rdt->schemata));
        if (rdt->enable_monitoring)
                json_object_set_new(section, "enableMonitoring", json_true());
        if (rdt->enable_cmt)
                json_object_set_new(section, "enableCMT", json_true());
        if (rdt->enable_mbm)
                json_object_set_new(section, "enableMBM", json_true());
        return section;
}

/* ---- network devices ---- */

/* The shim moves the devices in a hook, because runc before version 1.4 does not. */
static void add_net_device_hook(const RuntimeSpecInput *input, json_t *document, json_t *own) {
        json_t *hooks = member(document, "hooks", json_object);
        char path[32];

        (void) snprintf(path, sizeof(path), "/proc/%d/ns/net", (int) getpid());
        json_object_set_new(own, "hostNetwork", json_string(path));
        json_array_append_new(member(hooks, "createRuntime", json_array),
                              json_pack("{s:s, s:[s, s]}", "path", input->config->shim_path, "args",
                                        "mainstay-shim", "net-devices"));
}

static int edit_net_devices(const RuntimeSpecInput *input, json_t *document, const CdiEdits *edits,
                            Error *reterr) {
        json_t *own;

        if (edits->net_devices.n == 0)
                return 0;
        if (input->pod->spec.host_network || !input->config->shim_path)
                return error_setf(reterr, BUNDLE_DEVICE_MISSING,
                                  FAILED "the network device %s cannot be moved into a pod of the "
                                         "host network",
                                  edits->net_devices.items[0].host_interface_name);
        own = member(document, "mainstay", json_object);
        if (!json_object_get(own, "netDevices"))
                add_net_device_hook(input, document, own);
        for (size_t i = 0; i < edits->net_devices.n; i++)
                json_object_set_new(member(own, "netDevices", json_object),
                                    edits->net_devices.items[i].host_interface_name,
                                    json_string(edits->net_devices.items[i].name));
        return 0;
}

static void edit_the_rest(json_t *document, const CdiEdits *edits) {
        for (size_t i = 0; i < edits->hooks.n; i++)
                add_hook(document, &edits->hooks.items[i]);
        if (edits->intel_rdt)
                json_object_set_new(json_object_get(document, "linux"), "intelRdt",
                                    intel_rdt_section(edits->intel_rdt));
}

int cdi_edit_runtime_spec(const RuntimeSpecInput *input, json_t *document, Error *reterr) {
        EditsList list = { 0 };
        size_t n_mounts = 0;
        int r = collect_edits(input, &list, reterr);

        for (size_t i = 0; i < list.n && r >= 0; i++) {
                const CdiEdits *edits = list.items[i];

                edit_process(json_object_get(document, "process"), edits);
                r = edit_devices(input, document, edits, reterr);
                if (r >= 0)
                        r = edit_mounts(input, document, edits, &n_mounts);
                if (r >= 0)
                        r = edit_net_devices(input, document, edits, reterr);
                if (r >= 0)
                        edit_the_rest(document, edits);
        }
        if (r >= 0 && n_mounts > 0)
                sort_mounts_by_depth(document);
        free(list.items);
        return r;
}
