/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/shim/live-devices.h"

#include "agent/shim/container.h"
#include "agent/shim/device-filter.h"
#include "agent/shim/device-nodes.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define UPDATE_USEC_MAX (30 * USEC_PER_SEC)

enum {
        CONFIG_MAX = 64 * 1024 * 1024,
        RECORD_MAX = 256 * 1024,
        LIVE_DEVICES_MAX = 512,
};

static const char record_name[] = "devices";

typedef struct DeviceUpdate DeviceUpdate;

struct DeviceUpdate {
        DeviceUpdate *next;
        Shim *shim;
        char *id; /* ID of the container */
        char *bundle;
        char *cgroup;    /* as in /proc/PID/cgroup */
        char **devices;  /* as in the request */
        int mount_fd;    /* the container's mount namespace */
        bool has_users;  /* it has a user namespace */
        bool is_running; /* its task is running */
};

/* The devices in a list of lines. */
typedef struct LiveDeviceList {
        char **lines; /* split into parts */
        LiveDevice *items;
        size_t n;
} LiveDeviceList;

static void live_device_list_done(LiveDeviceList *list) {
        strv_free(list->lines);
        free(list->items);
}

/* Takes over the lines. 0; -EBADMSG, -E2BIG, -ENOMEM. */
static int parse_devices_take(char **lines, LiveDeviceList *ret) {
        int r = 0;

        ret->lines = lines;
        ret->n = strv_length(lines);
        if (ret->n > LIVE_DEVICES_MAX)
                return -E2BIG;
        ret->items = calloc(ret->n + 1, sizeof(*ret->items));
        if (!ret->items)
                return -ENOMEM;
        for (size_t i = 0; i < ret->n && r >= 0; i++)
                r = live_device_parse(lines[i], &ret->items[i]);
        return r;
}

static bool has_same(const LiveDeviceList *list, const LiveDevice *device) {
        for (size_t i = 0; i < list->n; i++) {
                const LiveDevice *item = &list->items[i];

                if (item->type == device->type && item->major == device->major &&
                    item->minor == device->minor && streq(item->path, device->path) &&
                    streq(item->access, device->access))
                        return true;
        }
        return false;
}

/* ---- what the container has ---- */

static int load_config_json(const DeviceUpdate *update, json_t **ret) {
        cleanup_free char *path = path_join(update->bundle, "config.json"), *text = NULL;
        size_t length = 0;
        int r = path ? read_file_at(AT_FDCWD, path, CONFIG_MAX, &text, &length) : -ENOMEM;

        return r < 0 ? r : json_parse_text(text, length, 0, ret, NULL);
}

static int read_first_lines(const json_t *config, char ***ret) {
        return json_append_texts(json_object_get(json_object_get(config, "mainstay"), "devices"),
                                 ret);
}

/* Without a record, the container has the devices that it started with. */
static int read_device_record(int bundle_fd, const json_t *config, char ***ret) {
        cleanup_free char *text = NULL;
        char *rest, *line;
        int r = read_file_at(bundle_fd, record_name, RECORD_MAX, &text, NULL);

        if (r == -ENOENT)
                return read_first_lines(config, ret);
        rest = text;
        while (r >= 0 && (line = strsep(&rest, "\n")))
                if (line[0])
                        r = strv_append(ret, line);
        return r;
}

static int write_device_record(int bundle_fd, char *const *lines) {
        cleanup_free char *text = text_join(lines, "\n");

        return text ? write_file_atomic_at(bundle_fd, record_name, text, strlen(text), 0600)
                    : -ENOMEM;
}

/* ---- the device cgroup ---- */

static int write_rule_v1(const DeviceUpdate *update, const LiveDevice *device, bool is_allowed,
                         Error *reterr) {
        char rule[64];

        (void) snprintf(rule, sizeof(rule), "%c %u:%u %s", device->type, device->major,
                        device->minor, device->access);
        return cgroup_write(update->cgroup, "devices",
                            is_allowed ? "devices.allow" : "devices.deny", rule, reterr);
}

static int apply_rules_v1(const DeviceUpdate *update, const DeviceRules *base,
                          const LiveDeviceList *before, const LiveDeviceList *after,
                          Error *reterr) {
        int r = 0;

        for (size_t i = 0; i < before->n && r >= 0; i++)
                if (!has_same(after, &before->items[i]) &&
                    !device_rules_allow(base, &before->items[i]))
                        r = write_rule_v1(update, &before->items[i], false, reterr);
        for (size_t i = 0; i < after->n && r >= 0; i++)
                r = write_rule_v1(update, &after->items[i], true, reterr);
        return r;
}

/* The runtime may have attached its program to the cgroup that it was given, or to one below. */
static int apply_rules_v2(const DeviceUpdate *update, DeviceRules *rules,
                          const LiveDeviceList *after, Error *reterr) {
        static const char *const below[] = { "", "/container" };
        int r = 0;

        for (size_t i = 0; i < after->n && r >= 0; i++)
                r = device_rules_add(rules, &after->items[i]);
        for (size_t i = 0; i < N_ELEMENTS(below) && r >= 0; i++) {
                cleanup_free char *path =
                        text_format("/sys/fs/cgroup%s%s", update->cgroup, below[i]);

                if (!path)
                        return -ENOMEM;
                if (i == 0 || access(path, F_OK) >= 0)
                        r = device_filter_replace(path, rules, reterr);
        }
        return r;
}

static int apply_rules(const DeviceUpdate *update, const json_t *config,
                       const LiveDeviceList *before, const LiveDeviceList *after, Error *reterr) {
        cleanup_with(live_device_list_done) LiveDeviceList first = { 0 };
        DeviceRules rules = { 0 };
        char **lines = NULL;
        int r = read_first_lines(config, &lines);

        if (r >= 0)
                r = parse_devices_take(lines, &first);
        if (r >= 0)
                r = device_rules_load(config, first.items, first.n, &rules);
        if (r >= 0 && !device_rules_allow_all(&rules))
                r = cgroup_version() == 2 ? apply_rules_v2(update, &rules, after, reterr)
                                          : apply_rules_v1(update, &rules, before, after, reterr);
        free(rules.items);
        return r;
}

/* ---- the nodes ---- */

static int report_node(const LiveDevice *device, const char *what, int r, Error *reterr) {
        if (r >= 0)
                return 0;
        return error_setf(reterr, -r, "cannot %s %s in the container: %s", what, device->path,
                          strerror(-r));
}

/* Opens descriptors of the nodes to bind, before the process leaves the mount namespace. */
static int clone_nodes(const DeviceUpdate *update, const LiveDeviceList *after, int *ret_fds) {
        for (size_t i = 0; i < after->n; i++) {
                ret_fds[i] = update->has_users ? device_node_clone(&after->items[i]) : -EBADF;
                if (update->has_users && ret_fds[i] < 0 && ret_fds[i] != -ENOENT)
                        return ret_fds[i];
        }
        return 0;
}

static int change_nodes(const DeviceNodes *nodes, const LiveDeviceList *before,
                        const LiveDeviceList *after, const int *clones, Error *reterr) {
        int r = 0;

        for (size_t i = 0; i < before->n && r >= 0; i++)
                if (!has_same(after, &before->items[i]))
                        r = report_node(&before->items[i], "remove",
                                        device_node_remove(nodes, &before->items[i]), reterr);
        for (size_t i = 0; i < after->n && r >= 0; i++)
                r = report_node(&after->items[i], "create",
                                device_node_create(nodes, &after->items[i], clones[i]), reterr);
        return r;
}

/* The process stays in the container's mount namespace. */
static int apply_nodes(const DeviceUpdate *update, const LiveDeviceList *before,
                       const LiveDeviceList *after, Error *reterr) {
        cleanup_free int *clones = calloc(after->n + 1, sizeof(*clones));
        DeviceNodes nodes = { .dev_fd = -EBADF };
        struct stat host = { 0 };
        int r;

        if (!clones)
                return -ENOMEM;
        (void) stat("/dev", &host);
        r = clone_nodes(update, after, clones);
        if (r < 0)
                return r;
        if (setns(update->mount_fd, CLONE_NEWNS) < 0)
                return error_setf(reterr, errno, "cannot enter the mounts of the container: %s",
                                  strerror(errno));
        r = device_nodes_open(host.st_dev, update->has_users, &nodes);
        if (r < 0)
                return error_setf(reterr, -r, "cannot open /dev of the container: %s",
                                  strerror(-r));
        r = change_nodes(&nodes, before, after, clones, reterr);
        close_fd(nodes.dev_fd);
        return r;
}

/* ---- a change ---- */

static void give_to_process_user(const json_t *config, LiveDeviceList *list) {
        const json_t *user = json_object_get(json_object_get(config, "process"), "user");
        json_int_t uid = json_integer_value(json_object_get(user, "uid")),
                   gid = json_integer_value(json_object_get(user, "gid"));

        for (size_t i = 0; i < list->n && (uid > 0 || gid > 0); i++) {
                list->items[i].uid = (uid_t) uid;
                list->items[i].gid = (gid_t) gid;
        }
}

/* Until the change is complete, the record contains both the old and the new devices. */
static int change_devices(const DeviceUpdate *update, int bundle_fd, const json_t *config,
                          Error *reterr) {
        cleanup_with(live_device_list_done) LiveDeviceList before = { 0 }, after = { 0 };
        cleanup_strv char **both = NULL;
        char **lines = NULL;
        int r = read_device_record(bundle_fd, config, &both);

        if (r >= 0)
                r = strv_extend(&lines, both);
        if (r >= 0)
                r = parse_devices_take(TAKE_PTR(lines), &before);
        if (r >= 0)
                r = strv_extend(&lines, update->devices);
        if (r >= 0)
                r = parse_devices_take(TAKE_PTR(lines), &after);
        if (r >= 0)
                r = strv_extend(&both, update->devices);
        if (r >= 0)
                r = write_device_record(bundle_fd, both);
        strv_free(lines);
        if (r < 0)
                return r;
        give_to_process_user(config, &after);
        r = apply_rules(update, config, &before, &after, reterr);
        if (r >= 0)
                r = apply_nodes(update, &before, &after, reterr);
        return r < 0 ? r : write_device_record(bundle_fd, update->devices);
}

/* In a task. */
static int update_devices_main(void *userdata, Error *reterr) {
        const DeviceUpdate *update = userdata;
        cleanup_json json_t *config = NULL;
        cleanup_close int bundle_fd = open(update->bundle, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = bundle_fd < 0 ? -errno : load_config_json(update, &config);

        return r < 0 ? r : change_devices(update, bundle_fd, config, reterr);
}

/* ---- the list of changes ---- */

static DeviceUpdate *device_update_free(DeviceUpdate *update) {
        if (!update)
                return NULL;
        close_fd(update->mount_fd);
        strv_free(update->devices);
        free(update->cgroup);
        free(update->bundle);
        free(update->id);
        free(update);
        return NULL;
}
DEFINE_CLEANUP(DeviceUpdate *, device_update_free)

static void start_next_update(Shim *shim);

static void remove_first_update(Shim *shim) {
        DeviceUpdate *first = shim->device_updates;

        shim->device_updates = first->next;
        device_update_free(first);
}

static void report_failure(Shim *shim, const char *id, const char *why) {
        cleanup_free char *message = text_format("cannot change its devices: %s", why);

        log_warning("Container '%.12s': %s", id, message ? message : why);
        agent_connection_send(&shim->connection,
                              &(ShimEvent){ .type = SHIM_EVENT_ERROR,
                                            .id = id,
                                            .message = message ? message : why });
}

static void on_update_done(const TaskResult *result, void *userdata) {
        const DeviceUpdate *update = userdata;
        Shim *shim = update->shim;
        const Attempt *attempt = attempt_find(&shim->attempts, update->id);

        /* A container that has ended in the meantime does not need them. */
        if (!task_succeeded(result) && attempt && attempt->state == ATTEMPT_RUNNING)
                report_failure(shim, update->id, task_explanation(result));
        remove_first_update(shim);
        start_next_update(shim);
}

static void start_next_update(Shim *shim) {
        while (shim->device_updates && !shim->device_updates->is_running) {
                DeviceUpdate *first = shim->device_updates;
                int r = task_start(&shim->tasks,
                                   &(TaskSpec){ .main = update_devices_main,
                                                .done = on_update_done,
                                                .userdata = first,
                                                .deadline = now_awake_usec() + UPDATE_USEC_MAX });

                if (r >= 0) {
                        first->is_running = true;
                        return;
                }
                report_failure(shim, first->id, strerror(-r));
                remove_first_update(shim);
        }
}

/* The first process is the shim's child and has not been reaped yet, so its PID is valid. */
static int open_mount_namespace(pid_t pid) {
        char path[64];
        int fd;

        (void) snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int) pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

static bool has_own_users(pid_t pid) {
        struct stat own, other;
        char path[64];

        (void) snprintf(path, sizeof(path), "/proc/%d/ns/user", (int) pid);
        return stat("/proc/self/ns/user", &own) >= 0 && stat(path, &other) >= 0 &&
               own.st_ino != other.st_ino;
}

static int make_update(Shim *shim, const ShimRequest *request, const Attempt *attempt,
                       DeviceUpdate **ret) {
        cleanup_with(device_update_freep) DeviceUpdate *update = calloc(1, sizeof(*update));

        if (!update)
                return -ENOMEM;
        update->mount_fd = -EBADF;
        update->shim = shim;
        update->id = strdup(attempt->id);
        update->bundle = strdup(strna(attempt->bundle));
        update->cgroup = container_cgroup(attempt);
        if (!update->id || !update->bundle || !update->cgroup)
                return -ENOMEM;
        for (size_t i = 0; i < request->devices.n; i++)
                if (strv_append(&update->devices, request->devices.items[i]) < 0)
                        return -ENOMEM;
        update->has_users = has_own_users(attempt->pid);
        update->mount_fd = open_mount_namespace(attempt->pid);
        if (update->mount_fd < 0)
                return update->mount_fd;
        *ret = TAKE_PTR(update);
        return 0;
}

static void append_update(Shim *shim, DeviceUpdate *update) {
        DeviceUpdate **link = &shim->device_updates;

        while (*link)
                link = &(*link)->next;
        *link = update;
}

/* An update that waits for the same container is older: the new one contains all of its devices. */
static void drop_older_update(Shim *shim, const char *id) {
        for (DeviceUpdate **link = &shim->device_updates; *link; link = &(*link)->next) {
                DeviceUpdate *update = *link;

                if (update->is_running || !streq(update->id, id))
                        continue;
                *link = update->next;
                device_update_free(update);
                return;
        }
}

void live_devices_set(Shim *shim, const ShimRequest *request) {
        const Attempt *attempt = attempt_find(&shim->attempts, request->id);
        DeviceUpdate *update = NULL;
        int r;

        if (!attempt || attempt->state != ATTEMPT_RUNNING || shim->tearing_down)
                return;
        r = make_update(shim, request, attempt, &update);
        if (r < 0) {
                report_failure(shim, request->id, strerror(-r));
                return;
        }
        drop_older_update(shim, request->id);
        append_update(shim, update);
        start_next_update(shim);
}

void live_devices_done(Shim *shim) {
        while (shim->device_updates)
                remove_first_update(shim);
}
