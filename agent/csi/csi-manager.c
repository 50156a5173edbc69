/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/csi/csi-files.h"
#include "agent/csi/csi-manager-private.h"
#include "agent/model/names.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/failpoint.h"
#include "common/list.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"
#include "common/utf8.h"

#include <errno.h>
#include <fcntl.h>

/* ---- versions ---- */

/* "v1.2.3", "1.0" */
static bool parse_version(const char *text, CsiVersion *ret) {
        CsiVersion version = { { 0 } };
        size_t n = 0;

        text += text[0] == 'v';
        while (n < N_ELEMENTS(version.parts)) {
                char *end;

                if (*text < '0' || *text > '9')
                        return false;
                version.parts[n++] = (unsigned) strtoul(text, &end, 10);
                text = end;
                if (*text != '.' || n == N_ELEMENTS(version.parts))
                        break;
                text++;
        }
        *ret = version;
        return n >= 2 && *text == '\0';
}

static int compare_csi_versions(const CsiVersion *a, const CsiVersion *b) {
        for (size_t i = 0; i < N_ELEMENTS(a->parts); i++)
                if (a->parts[i] != b->parts[i])
                        return a->parts[i] < b->parts[i] ? -1 : 1;
        return 0;
}

/* The highest version below 2, which must be at least 1. */
static bool find_highest_version(char *const *versions, CsiVersion *ret) {
        CsiVersion highest = { { 0 } }, version;

        for (size_t i = 0; versions && versions[i]; i++)
                if (parse_version(versions[i], &version) && version.parts[0] < 2 &&
                    compare_csi_versions(&version, &highest) > 0)
                        highest = version;
        *ret = highest;
        return highest.parts[0] == 1;
}

/* ---- drivers ---- */

CsiNodeDriver *csi_manager_find_driver(const CsiManager *manager, const char *name) {
        for (size_t i = 0; i < manager->drivers.n; i++)
                if (streq(manager->drivers.items[i].name, name))
                        return &manager->drivers.items[i];
        return NULL;
}

int csi_manager_check_driver(const CsiManager *manager, const char *name, const char *endpoint,
                             char *const *versions, Error *reterr) {
        const CsiNodeDriver *other = csi_manager_find_driver(manager, name);
        cleanup_free char *list = text_join(versions, " ");
        CsiVersion highest;

        if (check_csi_driver(name, NULL) < 0)
                return error_setf(reterr, EINVAL,
                                  "validation failed for CSI Driver %s at endpoint %s: its name "
                                  "must consist of at most 63 letters, digits, dots and dashes",
                                  name, endpoint);
        if (!versions || !versions[0])
                return error_setf(reterr, EINVAL,
                                  "validation failed for CSI Driver %s at endpoint %s: "
                                  "kubernetes.io/csi: ValidatePlugin for CSI driver \"%s\" failed. "
                                  "Plugin returned an empty list for supported versions",
                                  name, endpoint, name);
        if (!find_highest_version(versions, &highest))
                return error_setf(reterr, EINVAL,
                                  "validation failed for CSI Driver %s at endpoint %s: "
                                  "kubernetes.io/csi: ValidatePlugin for CSI driver \"%s\" failed. "
                                  "None of the versions specified [%s] are supported",
                                  name, endpoint, name, strna(list));
        if (other && compare_csi_versions(&other->version, &highest) >= 0)
                return error_setf(reterr, EINVAL,
                                  "validation failed for CSI Driver %s at endpoint %s: "
                                  "kubernetes.io/csi: ValidatePlugin for CSI driver \"%s\" failed. "
                                  "Another driver with the same name is already registered with a "
                                  "higher supported version: \"%u.%u.%u\"",
                                  name, endpoint, name, other->version.parts[0],
                                  other->version.parts[1], other->version.parts[2]);
        return 0;
}

static void node_driver_done(CsiNodeDriver *driver) {
        free(driver->name);
        free(driver->endpoint);
        free(driver->node_id);
        string_map_done(&driver->segments);
}

static void remove_driver(CsiManager *manager, const CsiNodeDriver *driver) {
        size_t at = (size_t) (driver - manager->drivers.items);

        node_driver_done(&manager->drivers.items[at]);
        ARRAY_REMOVE(manager->drivers.items, manager->drivers.n, at);
}

static int add_driver(CsiManager *manager, const char *name, const char *endpoint,
                      char *const *versions, const CsiNodeAnswer *answer) {
        CsiNodeDriver driver = { .name = strdup(name),
                                 .endpoint = strdup(endpoint),
                                 .node_id = strdup(strna(answer->node_id)),
                                 .max_volumes = MIN(answer->max_volumes, (int64_t) INT32_MAX) };
        CsiNodeDriver *place = NULL;
        int r = driver.name && driver.endpoint && driver.node_id ? 0 : -ENOMEM;

        (void) find_highest_version(versions, &driver.version);
        for (size_t i = 0; i < answer->segments.n && r >= 0; i++)
                r = string_map_set(&driver.segments, strna(answer->segments.items[i].key),
                                   strna(answer->segments.items[i].value));
        if (r >= 0)
                place = ARRAY_APPEND(manager->drivers.items, manager->drivers.n);
        if (!place) {
                node_driver_done(&driver);
                return -ENOMEM;
        }
        utf8_sanitize(driver.node_id);
        *place = driver;
        return 0;
}

bool csi_mount_waits(const CsiMount *mount) {
        return !mount->is_published || mount->is_unwanted || mount->is_republish_due;
}

/* Immediately retries the volumes that wait for the driver. */
static void wake_mounts_of(CsiManager *manager, const char *driver) {
        list_foreach(mount, manager->mounts)
                if (streq(mount->id.driver, driver) && csi_mount_waits(mount)) {
                        mount->due = now_boottime_usec();
                        mount->delay = 0;
                } else if (streq(mount->id.driver, driver) && !mount->is_ephemeral)
                        mount->claim_due = now_boottime_usec();
        csi_manager_arm(manager);
}

int csi_manager_register(CsiManager *manager, const char *name, const char *endpoint,
                         char *const *versions, const CsiNodeAnswer *answer) {
        const CsiNodeDriver *old = csi_manager_find_driver(manager, name);
        int r;

        if (old)
                remove_driver(manager, old);
        r = add_driver(manager, name, endpoint, versions, answer);
        if (r < 0)
                return r;
        DIE_AT("csi.registered");
        log_info("The CSI driver '%s' has registered", name);
        wake_mounts_of(manager, name);
        manager->config.on_drivers_changed(manager->config.userdata);
        return 0;
}

void csi_manager_unregister(CsiManager *manager, const char *name) {
        const CsiNodeDriver *driver = csi_manager_find_driver(manager, name);

        if (!driver)
                return;
        remove_driver(manager, driver);
        manager->config.on_drivers_changed(manager->config.userdata);
}

const CsiNodeDriverList *csi_manager_drivers(const CsiManager *manager) {
        return &manager->drivers;
}

bool csi_manager_driver_sets_group(const char *driver, void *manager) {
        const CsiNodeDriver *found = csi_manager_find_driver(manager, driver);

        return found && found->capabilities & 1U << CSI_VOLUME_MOUNT_GROUP;
}

void csi_manager_set_caller(CsiManager *manager, csi_call_t call, void *userdata) {
        manager->call = call;
        manager->call_userdata = userdata;
}

/* ---- mounts ---- */

int csi_volume_id_init(CsiVolumeId *id, const char *driver, const char *handle) {
        id->driver = strdup(driver);
        id->handle = strdup(handle);
        return id->driver && id->handle ? 0 : -ENOMEM;
}

void csi_volume_id_done(CsiVolumeId *id) {
        free(id->driver);
        free(id->handle);
        *id = (CsiVolumeId){ 0 };
}

bool csi_volume_id_equal(const CsiVolumeId *a, const CsiVolumeId *b) {
        return streq(a->driver, b->driver) && streq(a->handle, b->handle);
}

static void csi_mount_free(CsiMount *mount) {
        csi_mount_request_free(mount->request);
        free(mount->pod_uid);
        free(mount->name);
        csi_volume_id_done(&mount->id);
        free(mount->error);
        free(mount->expansion_error);
        free(mount);
}

static CsiMount *add_csi_mount(CsiManager *manager, const char *uid, const char *name,
                               const char *driver, const char *handle) {
        CsiMount *mount = calloc(1, sizeof(*mount));

        if (!mount)
                return NULL;
        mount->manager = manager;
        mount->pod_uid = strdup(uid);
        mount->name = strdup(name);
        mount->due = mount->claim_due = USEC_INFINITY;
        mount->is_attached = true;
        if (csi_volume_id_init(&mount->id, driver, handle) < 0 || !mount->pod_uid || !mount->name) {
                csi_mount_free(mount);
                return NULL;
        }
        LIST_PREPEND(manager->mounts, mount);
        return mount;
}

CsiMount *csi_manager_find_mount(const CsiManager *manager, const char *uid, const char *name) {
        list_foreach(mount, manager->mounts)
                if (streq(mount->pod_uid, uid) && streq(mount->name, name))
                        return mount;
        return NULL;
}

static int start_mount(CsiMount *mount, const Pod *pod, const CsiVolume *volume, Error *reterr) {
        CsiMountRequest *request;
        int r = csi_mount_request_new(pod, volume, &request);

        if (r < 0)
                return r;
        mount->due = USEC_INFINITY;
        r = csi_mount_start(mount, request, reterr);
        if (r < 0 || !mount->is_error_new)
                return r;
        mount->is_error_new = false; /* it has failed immediately */
        return error_setf(reterr, EIO, "%s", strna(mount->error));
}

static int take_new_error(CsiMount *mount, Error *reterr) {
        if (!mount->is_error_new)
                return 0;
        mount->is_error_new = false;
        return error_setf(reterr, EIO, "%s", strna(mount->error));
}

/* Fails while another pod has the volume; this mount continues when the other one is gone. */
static int check_other_pods(const CsiMount *mount, Error *reterr) {
        list_foreach(other, mount->manager->mounts)
                if (mount->is_of_one_pod && !mount->is_published && other != mount &&
                    other->pod_uid[0] &&
                    (other->may_be_published || other->step != CSI_STEP_NONE) &&
                    csi_volume_id_equal(&other->id, &mount->id))
                        return error_setf(reterr, EIO,
                                          "%s failed for volume \"%s\" : volume uses the "
                                          "ReadWriteOncePod access mode and is already in use by "
                                          "another pod",
                                          mount->is_block ? "MapVolume.SetUpDevice"
                                                          : "MountVolume.SetUp",
                                          mount->name);
        return 0;
}

int csi_manager_mount(CsiManager *manager, const Pod *pod, const CsiVolume *volume, Error *reterr) {
        CsiMount *mount = csi_manager_find_mount(manager, pod->metadata.uid, volume->name);
        int r = 0;

        if (manager->kubelet_fd < 0)
                return error_setf(reterr, EIO,
                                  "MountVolume.SetUp failed for volume \"%s\" : the directory %s "
                                  "cannot be used; make it writable, or name another one with "
                                  "--kubelet-dir",
                                  volume->name, manager->config.kubelet_dir);
        if (!mount)
                mount = add_csi_mount(manager, pod->metadata.uid, volume->name, volume->driver,
                                      volume->handle);
        if (!mount)
                return -ENOMEM;
        mount->is_unwanted = false;
        mount->is_ephemeral = volume->is_ephemeral;
        mount->is_block = volume->is_block;
        mount->is_attached = volume->publish_context;
        mount->is_of_one_pod = volume->is_of_one_pod;
        mount->is_republished = volume->is_republished;
        if (mount->is_published && !mount->is_republish_due)
                return 0;
        r = take_new_error(mount, reterr);
        if (r >= 0)
                r = check_other_pods(mount, reterr);
        if (r < 0)
                return r;
        if (mount->step == CSI_STEP_NONE &&
            (mount->due == USEC_INFINITY || mount->due <= now_boottime_usec()))
                r = start_mount(mount, pod, volume, reterr);
        if (r < 0)
                return r;
        if (mount->is_published)
                return 0;
        return mount->error ? error_setf(reterr, EAGAIN, "%s", mount->error)
                            : error_setf(reterr, EAGAIN,
                                         "volume \"%s\" is being mounted by the CSI driver %s",
                                         volume->name, volume->driver);
}

/* As in the kubelet, a volume is republished immediately after a restart of the agent. */
static void note_republish(CsiMount *mount, bool is_republished) {
        bool is_new = is_republished && !mount->is_republished;

        mount->is_republished = is_republished;
        if (!is_republished)
                mount->is_republish_due = false;
        if (!is_new || mount->step != CSI_STEP_NONE)
                return;
        if (mount->is_published) {
                mount->due = csi_republish_time();
                csi_manager_arm(mount->manager);
        } else
                mount->is_republish_due = true;
}

int csi_manager_check_running(CsiManager *manager, const char *uid, const CsiVolume *volume,
                              Error *reterr) {
        CsiMount *mount = csi_manager_find_mount(manager, uid, volume->name);
        int r;

        if (!mount || mount->is_unwanted)
                return 0;
        mount->is_attached = volume->publish_context;
        mount->is_of_one_pod = volume->is_of_one_pod;
        note_republish(mount, volume->is_republished);
        r = mount->is_republished ? take_new_error(mount, reterr) : 0;
        if (r < 0)
                return r;
        return mount->is_republish_due && mount->step == CSI_STEP_NONE &&
               csi_manager_find_driver(manager, mount->id.driver);
}

bool csi_manager_unmount_pod(CsiManager *manager, const char *uid) {
        bool is_done = true;

        if (!manager)
                return true;
        list_foreach(mount, manager->mounts) {
                if (!streq(mount->pod_uid, uid))
                        continue;
                is_done = false;
                if (mount->is_unwanted)
                        continue;
                mount->is_unwanted = true;
                mount->delay = 0;
                mount->due = now_boottime_usec();
        }
        csi_manager_arm(manager);
        return is_done;
}

int csi_manager_volumes_in_use(const CsiManager *manager, char ***ret) {
        int r = 0;

        list_foreach(mount, manager->mounts) {
                cleanup_free char *name =
                        text_format("kubernetes.io/csi/%s^%s", mount->id.driver, mount->id.handle);

                if (!name)
                        return -ENOMEM;
                if (mount->is_attached && !mount->is_ephemeral && !strv_contains(*ret, name))
                        r = strv_append(ret, name);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* ---- time and answers ---- */

void csi_manager_arm(CsiManager *manager) {
        uint64_t now = now_boottime_usec(), due = USEC_INFINITY;

        list_foreach(mount, manager->mounts)
                if (mount->step == CSI_STEP_NONE)
                        due = MIN(due, MIN(mount->due, mount->claim_due));
        if (due != USEC_INFINITY)
                (void) event_timer_arm(manager->timer, due > now ? due - now : 0);
}

static void end_mount(CsiManager *manager, CsiMount *mount) {
        LIST_REMOVE(manager->mounts, mount);
        manager->config.on_pod_changed(mount->pod_uid, manager->config.userdata);
        csi_mount_wake_others(mount);
        csi_mount_free(mount);
}

static void notify_pod_of_due_mount(CsiMount *mount, uint64_t now) {
        const CsiManagerConfig *config = &mount->manager->config;
        bool is_claim_due = mount->claim_due <= now;

        if (is_claim_due) {
                mount->claim_due = USEC_INFINITY;
                mount->is_claim_due = true;
        }
        if (mount->due <= now) {
                mount->due = USEC_INFINITY;
                mount->is_republish_due |= mount->is_republished;
        }
        if (!mount->is_published || mount->is_republished || is_claim_due)
                config->on_pod_changed(mount->pod_uid, config->userdata);
}

static int on_csi_due(sd_event_source *source, uint64_t usec, void *userdata) {
        CsiManager *manager = userdata;
        uint64_t now = now_boottime_usec();

        list_foreach_safe(mount, manager->mounts) {
                if (mount->step != CSI_STEP_NONE || MIN(mount->due, mount->claim_due) > now)
                        continue;
                if (!mount->is_unwanted)
                        notify_pod_of_due_mount(mount, now);
                else {
                        mount->claim_due = USEC_INFINITY;
                        if (csi_unmount_step(mount))
                                end_mount(manager, mount);
                }
        }
        csi_manager_arm(manager);
        return 0;
}

void csi_manager_answer(CsiManager *manager, int64_t call, int64_t code, const char *error,
                        const CsiNodeAnswer *answer) {
        list_foreach(mount, manager->mounts) {
                if (mount->stats_call == call) {
                        csi_stats_answer(mount, code, answer);
                        return;
                }
                if (mount->call == call && mount->step != CSI_STEP_NONE) {
                        csi_mount_answer(mount, code, error, answer);
                        return;
                }
        }
}

void csi_manager_on_calls_lost(CsiManager *manager, bool were_read) {
        list_foreach(mount, manager->mounts) {
                mount->stats_call = 0;
                if (mount->step == CSI_STEP_NONE)
                        continue;
                if (were_read)
                        csi_mount_answer(
                                mount, 14,
                                "rpc error: code = Unavailable desc = mainstay-plugins has ended",
                                NULL);
                else
                        csi_mount_repeat(mount);
        }
}

/* ---- the manager ---- */

static int on_volume_found(const char *pod_uid, const CsiVolumeData *data, void *userdata) {
        CsiManager *manager = userdata;
        CsiStage *stage;
        CsiMount *mount;

        if (pod_uid) {
                mount = add_csi_mount(manager, pod_uid, data->name, data->driver, data->handle);
                if (!mount)
                        return -ENOMEM;
                mount->may_be_published = true;
                mount->is_ephemeral = data->is_ephemeral;
                mount->is_block = data->is_block;
                return 0;
        }
        stage = csi_stage_add(manager, data->driver, data->handle,
                              data->is_block ? data->name : NULL);
        return stage ? text_replace(&stage->selinux_label, data->selinux_label) : -ENOMEM;
}

int csi_manager_new(const CsiManagerConfig *config, CsiManager **ret) {
        CsiManager *manager = calloc(1, sizeof(*manager));
        int r;

        if (!manager)
                return -ENOMEM;
        manager->config = *config;
        manager->last_call = CSI_CALL_FIRST;
        manager->kubelet_fd = open(config->kubelet_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = event_add_disabled_timer(config->event, &manager->timer, CLOCK_BOOTTIME,
                                     10 * USEC_PER_MSEC, on_csi_due, manager);
        if (r >= 0 && manager->kubelet_fd >= 0)
                r = csi_files_find(manager->kubelet_fd, on_volume_found, manager);
        if (r < 0)
                csi_manager_free(manager);
        else
                *ret = manager;
        return r;
}

static bool is_stage_in_use(const CsiManager *manager, const CsiStage *stage) {
        list_foreach(mount, manager->mounts)
                if (csi_volume_id_equal(&mount->id, &stage->id))
                        return true;
        return false;
}

void csi_manager_sweep(CsiManager *manager, bool (*has_pod)(const char *uid, void *userdata),
                       void *userdata) {
        uint64_t now = now_boottime_usec();

        list_foreach(stage, manager->stages) {
                CsiMount *mount;

                if (is_stage_in_use(manager, stage))
                        continue;
                mount = add_csi_mount(manager, "",
                                      stage->block_name ? stage->block_name : stage->id.handle,
                                      stage->id.driver, stage->id.handle);
                if (mount)
                        mount->is_block = stage->block_name;
        }
        list_foreach(mount, manager->mounts)
                if (!mount->pod_uid[0] || !has_pod(mount->pod_uid, userdata)) {
                        mount->is_unwanted = true;
                        mount->due = now;
                }
        csi_manager_arm(manager);
}

CsiManager *csi_manager_free(CsiManager *manager) {
        if (!manager)
                return NULL;
        for (size_t i = 0; i < manager->drivers.n; i++)
                node_driver_done(&manager->drivers.items[i]);
        free(manager->drivers.items);
        list_foreach_safe(mount, manager->mounts)
                csi_mount_free(mount);
        while (manager->stages)
                csi_stage_free(manager, manager->stages);
        sd_event_source_disable_unref(manager->timer);
        close_fd(manager->kubelet_fd);
        free(manager);
        return NULL;
}

void csi_manager_dump(const CsiManager *manager, FILE *out) {
        dump_section(out, "CSI");
        for (size_t i = 0; i < manager->drivers.n; i++)
                dump_line(out, 1, "driver: %s at %s, capabilities %#x",
                          manager->drivers.items[i].name, manager->drivers.items[i].endpoint,
                          manager->drivers.items[i].capabilities);
        list_foreach(mount, manager->mounts)
                dump_line(out, 1, "volume: %s of pod %s by %s: %s%s%s%s%s%s%s", mount->name,
                          mount->pod_uid, mount->id.driver,
                          mount->step               ? csi_step_methods[mount->step]
                          : mount->is_published     ? "mounted"
                          : mount->may_be_published ? "may be mounted"
                                                    : "not mounted",
                          mount->is_unwanted ? ", not needed any more" : "",
                          mount->is_republished ? ", published again and again" : "",
                          mount->error ? ", " : "", strna(mount->error),
                          mount->expansion_error ? ", " : "", strna(mount->expansion_error));
}
