/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that mount and unmount one volume, in order. Only one operation for a volume is in
 * progress on this node at any time. */

#include "agent/csi/csi-files.h"
#include "agent/csi/csi-manager-private.h"
#include "agent/csi/csi-messages.h"
#include "common/back-off.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/list.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/random.h>

#define CALL_USEC (120 * USEC_PER_SEC)

/* The kubelet's interval between two syncs of a pod, and the maximum random delay added to it. */
#define REPUBLISH_USEC        (60 * USEC_PER_SEC)
#define REPUBLISH_JITTER_USEC (30 * USEC_PER_SEC)

const BackOffLimits csi_back_off = { 500 * USEC_PER_MSEC, 122 * USEC_PER_SEC };

const char *const csi_step_methods[N_CSI_STEPS] = {
        [CSI_STEP_RESTAGE] = "NodeUnstageVolume",     [CSI_STEP_MOUNT] = "NodeGetCapabilities",
        [CSI_STEP_STAGE] = "NodeStageVolume",         [CSI_STEP_PUBLISH] = "NodePublishVolume",
        [CSI_STEP_UNPUBLISH] = "NodeUnpublishVolume", [CSI_STEP_UNMOUNT] = "NodeGetCapabilities",
        [CSI_STEP_UNSTAGE] = "NodeUnstageVolume",     [CSI_STEP_CAN_EXPAND] = "NodeGetCapabilities",
        [CSI_STEP_EXPAND] = "NodeExpandVolume",
};

/* The prefixes of the kubelet's messages, for file systems and for block devices. */
static const char *const step_words[N_CSI_STEPS][2] = {
        [CSI_STEP_MOUNT] = { "MountVolume.SetUp", "MapVolume.MapPodDevice" },
        [CSI_STEP_RESTAGE] = { "UnmountDevice", "UnmapDevice.TearDownDevice" },
        [CSI_STEP_STAGE] = { "MountVolume.MountDevice", "MapVolume.SetUpDevice" },
        [CSI_STEP_PUBLISH] = { "MountVolume.SetUp", "MapVolume.MapPodDevice" },
        [CSI_STEP_UNPUBLISH] = { "UnmountVolume.TearDown", "UnmapVolume.UnmapPodDevice" },
        [CSI_STEP_UNMOUNT] = { "UnmountDevice", "UnmapDevice.TearDownDevice" },
        [CSI_STEP_UNSTAGE] = { "UnmountDevice", "UnmapDevice.TearDownDevice" },
};

/* ---- the request of a mount ---- */

static void wipe_map(StringMap *map) {
        for (size_t i = 0; i < map->n; i++)
                explicit_bzero(map->items[i].value, strlen(map->items[i].value));
        string_map_done(map);
}

void csi_mount_request_free(CsiMountRequest *request) {
        if (!request)
                return;
        string_map_done(&request->stage_attributes);
        wipe_map(&request->publish_attributes);
        string_map_done(&request->publish_context);
        wipe_map(&request->stage_secrets);
        wipe_map(&request->publish_secrets);
        wipe_map(&request->expand_secrets);
        free(request->fs_type);
        strv_free(request->mount_options);
        free(request->selinux_label);
        free(request->group);
        free(request);
}

static int copy_map(const StringMap *from, StringMap *to) {
        int r = 0;

        for (size_t i = 0; from && i < from->n && r >= 0; i++)
                r = string_map_set(to, from->items[i].key, from->items[i].value);
        return r;
}

static int copy_secret(const DataObject *secret, StringMap *to) {
        int r = 0;

        for (size_t i = 0; secret && i < secret->values.n && r >= 0; i++)
                r = string_map_set(to, secret->values.items[i].key, secret->values.items[i].bytes);
        return r;
}

static int add_pod_info(const Pod *pod, const CsiVolume *volume, StringMap *attributes) {
        const struct {
                const char *key, *value;
        } infos[] = {
                { "csi.storage.k8s.io/pod.name", pod->metadata.name },
                { "csi.storage.k8s.io/pod.namespace", pod->metadata.namespace },
                { "csi.storage.k8s.io/pod.uid", pod->metadata.uid },
                { "csi.storage.k8s.io/serviceAccount.name", strna(pod->spec.service_account_name) },
                { "csi.storage.k8s.io/ephemeral", volume->is_ephemeral ? "true" : "false" },
        };
        int r = 0;

        for (size_t i = 0; i < N_ELEMENTS(infos) && volume->has_pod_info && r >= 0; i++)
                r = string_map_set(attributes, infos[i].key, infos[i].value);
        return r;
}

static int fill_request(const Pod *pod, const CsiVolume *volume, CsiMountRequest *request) {
        const OptionalInt *group = &pod->spec.security_context.fs_group;
        int r = copy_map(volume->attributes, &request->stage_attributes);

        request->access = volume->access;
        request->is_read_only = volume->is_read_only;
        if (r >= 0)
                r = copy_map(volume->attributes, &request->publish_attributes);
        if (r >= 0)
                r = add_pod_info(pod, volume, &request->publish_attributes);
        if (r >= 0)
                r = copy_map(volume->publish_context, &request->publish_context);
        if (r >= 0)
                r = copy_secret(volume->stage_secret, &request->stage_secrets);
        if (r >= 0)
                r = copy_secret(volume->publish_secret, &request->publish_secrets);
        if (r >= 0)
                r = copy_secret(volume->expand_secret, &request->expand_secrets);
        if (r >= 0 && volume->tokens)
                r = string_map_set(volume->has_tokens_in_secrets ? &request->publish_secrets
                                                                 : &request->publish_attributes,
                                   "csi.storage.k8s.io/serviceAccount.tokens", volume->tokens);
        if (r >= 0 && volume->fs_type)
                r = text_replace(&request->fs_type, volume->fs_type);
        for (size_t i = 0; volume->mount_options && volume->mount_options[i] && r >= 0; i++)
                r = strv_append(&request->mount_options, volume->mount_options[i]);
        if (r >= 0)
                r = text_replace(&request->selinux_label, volume->selinux_label);
        if (r >= 0 && volume->selinux_label)
                r = strv_appendf(&request->mount_options, "context=\"%s\"", volume->selinux_label);
        if (r >= 0 && group->is_set) {
                request->group = text_format("%" PRId64, group->value);
                r = request->group ? 0 : -ENOMEM;
        }
        return r;
}

int csi_mount_request_new(const Pod *pod, const CsiVolume *volume, CsiMountRequest **ret) {
        CsiMountRequest *request = calloc(1, sizeof(*request));
        int r = request ? fill_request(pod, volume, request) : -ENOMEM;

        if (r < 0)
                csi_mount_request_free(request);
        else
                *ret = request;
        return r;
}

/* ---- paths and files ---- */

static char *absolute_path(const CsiMount *mount, const char *directory, const char *name) {
        return text_format("%s/%s/%s", mount->manager->config.kubelet_dir, directory, name);
}

char *csi_mount_publish_path(const CsiMount *mount) {
        cleanup_free char *directory = mount->is_block
                                               ? csi_block_publish_dir(mount->name)
                                               : csi_publish_dir(mount->pod_uid, mount->name);

        return directory ? absolute_path(mount, directory,
                                         mount->is_block ? mount->pod_uid : CSI_MOUNT_NAME)
                         : NULL;
}

char *csi_mount_stage_path(const CsiMount *mount) {
        cleanup_free char *directory = csi_stage_dir(mount->id.driver, mount->id.handle),
                          *block = csi_block_stage_dir(mount->name);

        if (!directory || !block)
                return NULL;
        return mount->is_block ? text_format("%s/%s", mount->manager->config.kubelet_dir, block)
                               : absolute_path(mount, directory, CSI_STAGE_NAME);
}

/* The complete content, which is also used for the stage of a block device. */
static CsiVolumeData data_of_mount(const CsiMount *mount, char attachment[CSI_NAME_SIZE]) {
        const char *node = strna(mount->manager->config.node_name);

        csi_attachment_name(mount->id.handle, mount->id.driver, node, attachment);
        return (CsiVolumeData){ .driver = mount->id.driver,
                                .handle = mount->id.handle,
                                .name = mount->name,
                                .node = (char *) (uintptr_t) node,
                                .attachment = attachment,
                                .selinux_label = mount->request->selinux_label,
                                .is_ephemeral = mount->is_ephemeral,
                                .is_block = mount->is_block };
}

static int write_block_data(const CsiMount *mount, const char *pod_uid) {
        char attachment[CSI_NAME_SIZE];
        const CsiVolumeData data = data_of_mount(mount, attachment);

        return csi_files_write_block(mount->manager->kubelet_fd, mount->manager->config.kubelet_dir,
                                     pod_uid, &data);
}

static int write_publish_data(const CsiMount *mount) {
        cleanup_free char *directory = csi_publish_dir(mount->pod_uid, mount->name);
        char attachment[CSI_NAME_SIZE];
        const CsiVolumeData data = data_of_mount(mount, attachment);

        if (mount->is_block)
                return write_block_data(mount, mount->pod_uid);
        return !directory ? -ENOMEM
                          : csi_files_write(mount->manager->kubelet_fd, directory, NULL, &data);
}

static int write_stage_data(const CsiMount *mount) {
        cleanup_free char *directory = csi_stage_dir(mount->id.driver, mount->id.handle);

        if (mount->is_block)
                return write_block_data(mount, NULL);
        return !directory
                       ? -ENOMEM
                       : csi_files_write(mount->manager->kubelet_fd, directory, CSI_STAGE_NAME,
                                         &(CsiVolumeData){ .driver = mount->id.driver,
                                                           .handle = mount->id.handle,
                                                           .selinux_label =
                                                                   mount->request->selinux_label });
}

static int remove_publish_files(const CsiMount *mount) {
        cleanup_free char *directory = csi_publish_dir(mount->pod_uid, mount->name);

        if (mount->is_block)
                return csi_files_remove_block(mount->manager->kubelet_fd, mount->pod_uid,
                                              mount->name);
        return !directory ? -ENOMEM
                          : csi_files_remove(mount->manager->kubelet_fd, directory, CSI_MOUNT_NAME);
}

static int remove_stage_files(const CsiMount *mount) {
        cleanup_free char *directory = csi_stage_dir(mount->id.driver, mount->id.handle);

        if (mount->is_block)
                return csi_files_remove_block(mount->manager->kubelet_fd, NULL, mount->name);
        return !directory ? -ENOMEM
                          : csi_files_remove(mount->manager->kubelet_fd, directory, CSI_STAGE_NAME);
}

/* ---- stages ---- */

CsiStage *csi_stage_add(CsiManager *manager, const char *driver, const char *handle,
                        const char *block_name) {
        CsiStage *stage = calloc(1, sizeof(*stage));

        if (!stage)
                return NULL;
        if (csi_volume_id_init(&stage->id, driver, handle) < 0 ||
            (block_name && !(stage->block_name = strdup(block_name)))) {
                csi_volume_id_done(&stage->id);
                free(stage);
                return NULL;
        }
        LIST_PREPEND(manager->stages, stage);
        return stage;
}

void csi_stage_free(CsiManager *manager, CsiStage *stage) {
        LIST_REMOVE(manager->stages, stage);
        csi_volume_id_done(&stage->id);
        free(stage->block_name);
        free(stage->selinux_label);
        free(stage);
}

static CsiStage *find_stage(const CsiMount *mount) {
        list_foreach(stage, mount->manager->stages)
                if (csi_volume_id_equal(&stage->id, &mount->id))
                        return stage;
        return NULL;
}

/* NULL: out of memory. */
static CsiStage *get_stage(const CsiMount *mount) {
        CsiStage *stage = find_stage(mount);

        return stage ? stage
                     : csi_stage_add(mount->manager, mount->id.driver, mount->id.handle,
                                     mount->is_block ? mount->name : NULL);
}

bool csi_mount_is_of(const CsiMount *mount, const CsiMount *other) {
        return csi_volume_id_equal(&mount->id, &other->id);
}

/* Whether another pod uses the volume, or is about to. */
static bool is_shared_by_pods(const CsiMount *mount) {
        list_foreach(other, mount->manager->mounts)
                if (other != mount && csi_mount_is_of(other, mount))
                        return true;
        return false;
}

bool csi_mount_is_busy(const CsiMount *mount) {
        list_foreach(other, mount->manager->mounts)
                if (other != mount && other->step != CSI_STEP_NONE && csi_mount_is_of(other, mount))
                        return true;
        return false;
}

/* ---- the end of an operation ---- */

void csi_mount_wake_others(const CsiMount *mount) {
        list_foreach(other, mount->manager->mounts)
                if (other != mount && csi_mount_waits(other) && csi_mount_is_of(other, mount))
                        other->due = MIN(other->due, now_boottime_usec());
}

void csi_mount_release(CsiMount *mount) {
        mount->step = CSI_STEP_NONE;
        mount->call = 0;
        csi_mount_request_free(mount->request);
        mount->request = NULL;
        csi_mount_wake_others(mount);
        csi_manager_arm(mount->manager);
}

static void end_operation(CsiMount *mount, uint64_t delay) {
        mount->due = now_boottime_usec() + delay;
        csi_mount_release(mount);
}

static void set_error(CsiMount *mount, CsiStep step, const char *why) {
        char *text = text_format("%s failed for volume \"%s\" : %s",
                                 step_words[step][mount->is_block], mount->name, why);

        if (!streq_ptr(text, mount->error) && (mount->is_unwanted || step >= CSI_STEP_UNPUBLISH))
                log_warning("Pod %s: %s", mount->pod_uid, strna(text));
        free(mount->error);
        mount->error = text;
        mount->is_error_new = true;
}

static void fail_operation(CsiMount *mount, CsiStep step, const char *why) {
        set_error(mount, step, why);
        mount->delay = back_off_next_delay(mount->delay, &csi_back_off);
        end_operation(mount, mount->delay);
        mount->manager->config.on_pod_changed(mount->pod_uid, mount->manager->config.userdata);
}

uint64_t csi_republish_time(void) {
        uint32_t random = 0;

        (void) !getrandom(&random, sizeof(random), 0);
        return now_boottime_usec() + REPUBLISH_USEC + random % REPUBLISH_JITTER_USEC;
}

static void finish_mount(CsiMount *mount) {
        mount->is_published = true;
        mount->is_republish_due = false;
        mount->delay = 0;
        text_replace(&mount->error, NULL);
        mount->is_error_new = false;
        end_operation(mount, 0);
        if (!mount->is_unwanted)
                mount->due = mount->is_republished ? csi_republish_time() : USEC_INFINITY;
        csi_manager_arm(mount->manager);
        mount->manager->config.on_pod_changed(mount->pod_uid, mount->manager->config.userdata);
}

/* ---- calls ---- */

int csi_mount_send(const CsiMount *mount, const char *method, const Buffer *request, uint64_t usec,
                   int64_t *ret_call) {
        CsiManager *manager = mount->manager;
        const CsiNodeDriver *driver = csi_manager_find_driver(manager, mount->id.driver);
        const CsiCallSpec call = { .call = ++manager->last_call,
                                   .endpoint = driver ? driver->endpoint : NULL,
                                   .method = method,
                                   .request = request,
                                   .usec = usec };

        *ret_call = call.call;
        return driver && manager->call ? manager->call(&call, manager->call_userdata) : -ENOTCONN;
}

void csi_mount_call(CsiMount *mount, CsiStep step, const Buffer *request) {
        int r;

        mount->step = step;
        r = csi_mount_send(mount, csi_step_methods[step], request, CALL_USEC, &mount->call);
        if (r < 0) {
                cleanup_free char *why = text_format(
                        "rpc error: code = Unavailable desc = cannot connect to the driver: %s",
                        strerror(-r));

                csi_mount_answer(mount, 14, strna(why), NULL);
        }
}

static bool driver_can(const CsiMount *mount, CsiCapability capability) {
        return mount->capabilities & 1U << capability;
}

int64_t csi_mount_access_mode(const CsiMount *mount) {
        static const int64_t modes[] = {
                [CSI_ACCESS_READ_WRITE_ONCE] = 1,
                [CSI_ACCESS_READ_ONLY_MANY] = 3,
                [CSI_ACCESS_READ_WRITE_MANY] = 5,
                [CSI_ACCESS_READ_WRITE_ONCE_POD] = 1,
        };
        bool tells_writers = driver_can(mount, CSI_SINGLE_NODE_MULTI_WRITER);

        if (tells_writers && mount->request->access == CSI_ACCESS_READ_WRITE_ONCE)
                return 7;
        if (tells_writers && mount->request->access == CSI_ACCESS_READ_WRITE_ONCE_POD)
                return 6;
        return modes[mount->request->access];
}

/* An ephemeral volume is never staged. */
static bool is_staging(const CsiMount *mount) {
        return !mount->is_ephemeral && driver_can(mount, CSI_STAGE_UNSTAGE_VOLUME);
}

static void call_stage(CsiMount *mount, CsiStep step) {
        const CsiMountRequest *request = mount->request;
        bool has_staging = is_staging(mount) || mount->is_block;
        cleanup_free char *staging = has_staging ? csi_mount_stage_path(mount) : NULL;
        cleanup_free char *target = step == CSI_STEP_PUBLISH ? csi_mount_publish_path(mount) : NULL;
        cleanup_buffer Buffer body = { 0 };
        int r = encode_csi_stage_request(
                &(CsiStageRequest){
                        .volume_id = mount->id.handle,
                        .publish_context = &request->publish_context,
                        .staging_path = staging,
                        .target_path = target,
                        .is_block = mount->is_block,
                        .fs_type = request->fs_type,
                        .mount_flags = request->mount_options,
                        .mount_group =
                                driver_can(mount, CSI_VOLUME_MOUNT_GROUP) ? request->group : NULL,
                        .access_mode = csi_mount_access_mode(mount),
                        .is_read_only = request->is_read_only,
                        .secrets = target ? &request->publish_secrets : &request->stage_secrets,
                        .volume_context = target ? &request->publish_attributes
                                                 : &request->stage_attributes },
                &body);

        if (r < 0 || (has_staging && !staging) || (step == CSI_STEP_PUBLISH && !target))
                fail_operation(mount, step, strerror(r < 0 ? -r : ENOMEM));
        else
                csi_mount_call(mount, step, &body);
        if (body.data)
                explicit_bzero(body.data, body.length);
}

/* Takes 'path'; NULL: out of memory. Unpublishing and unstaging have the same arguments. */
static void call_unmount(CsiMount *mount, CsiStep step, char *path) {
        cleanup_buffer Buffer request = { 0 };
        int r = path ? encode_csi_unstage_request(mount->id.handle, path, &request) : -ENOMEM;

        free(path);
        if (r < 0)
                fail_operation(mount, step, strerror(-r));
        else
                csi_mount_call(mount, step, &request);
}

/* ---- mounting ---- */

int csi_mount_start(CsiMount *mount, CsiMountRequest *request, Error *reterr) {
        if (csi_mount_is_busy(mount)) {
                csi_mount_request_free(request);
                return 0;
        }
        mount->request = request;
        mount->was_uncertain = mount->may_be_published;
        mount->was_stage_uncertain = find_stage(mount);
        if (csi_manager_find_driver(mount->manager, mount->id.driver)) {
                csi_mount_call(mount, CSI_STEP_MOUNT, &(Buffer){ 0 });
                return 0;
        }
        (void) error_setf(reterr, EIO,
                          "%s failed for volume \"%s\" : kubernetes.io/csi: %s: driver name %s not "
                          "found in the list of registered CSI drivers",
                          step_words[mount->is_ephemeral ? CSI_STEP_PUBLISH : CSI_STEP_STAGE]
                                    [mount->is_block],
                          mount->name,
                          mount->is_block ? "blockMapper.SetUpDevice failed to get CSI client"
                          : mount->is_ephemeral
                                  ? "mounter.SetUpAt failed to get CSI client"
                                  : "attacher.MountDevice failed to create newCsiDriverClient",
                          mount->id.driver);
        (void) text_replace(&mount->error, reterr ? reterr->message : NULL);
        mount->delay = back_off_next_delay(mount->delay, &csi_back_off);
        end_operation(mount, mount->delay);
        return -EIO;
}

static void publish_volume(CsiMount *mount) {
        int r = write_publish_data(mount);

        DIE_AT("csi.publishing");
        mount->may_be_published = true;
        if (r < 0)
                fail_operation(mount, CSI_STEP_PUBLISH, strerror(-r));
        else
                call_stage(mount, CSI_STEP_PUBLISH);
}

static void stage_volume(CsiMount *mount) {
        const char *label = mount->request->selinux_label;
        CsiStage *stage = find_stage(mount);
        int r;

        if (stage && !streq_ptr(stage->selinux_label, label)) {
                call_unmount(mount, CSI_STEP_RESTAGE, csi_mount_stage_path(mount));
                return;
        }
        if (stage && stage->is_staged) {
                publish_volume(mount);
                return;
        }
        stage = get_stage(mount);
        r = stage ? text_replace(&stage->selinux_label, label) : -ENOMEM;
        if (r >= 0)
                r = write_stage_data(mount);
        DIE_AT("csi.staging");
        if (r < 0)
                fail_operation(mount, CSI_STEP_STAGE, strerror(-r));
        else
                call_stage(mount, CSI_STEP_STAGE);
}

/* Whether the error is final: the driver has not acted on the call, and will not do so later. */
static bool is_final(int64_t code) {
        return code != 1 && code != 4 && code != 8 && code != 10 && code != 14;
}

static void fail_mount(CsiMount *mount, int64_t code, const char *error) {
        CsiStage *stage = find_stage(mount);
        CsiStep step = mount->step;

        if (step == CSI_STEP_PUBLISH && is_final(code) && !mount->was_uncertain &&
            remove_publish_files(mount) >= 0)
                mount->may_be_published = false;
        if (step == CSI_STEP_STAGE && is_final(code) && !mount->was_stage_uncertain && stage &&
            remove_stage_files(mount) >= 0)
                csi_stage_free(mount->manager, stage);
        fail_operation(mount, step, error);
}

/* ---- unmounting ---- */

static void end_stage(CsiMount *mount) {
        CsiStage *stage = find_stage(mount);
        int r;

        DIE_AT("csi.unstaging");
        r = remove_stage_files(mount);
        DIE_AT("csi.unstaged");
        if (r < 0) {
                fail_operation(mount, CSI_STEP_UNSTAGE, strerror(-r));
                return;
        }
        if (stage)
                csi_stage_free(mount->manager, stage);
        end_operation(mount, 0);
}

static void end_publish(CsiMount *mount) {
        int r;

        DIE_AT("csi.unpublishing");
        r = remove_publish_files(mount);
        DIE_AT("csi.unpublished");
        if (r < 0) {
                fail_operation(mount, CSI_STEP_UNPUBLISH, strerror(-r));
                return;
        }
        mount->may_be_published = mount->is_published = false;
        end_operation(mount, 0);
}

bool csi_unmount_step(CsiMount *mount) {
        bool needs_unstage =
                !mount->may_be_published && find_stage(mount) && !is_shared_by_pods(mount);

        if (mount->step != CSI_STEP_NONE || mount->due > now_boottime_usec())
                return false;
        if (!mount->may_be_published && !needs_unstage)
                return true;
        mount->due = USEC_INFINITY;
        if (csi_mount_is_busy(mount))
                return false;
        if (!csi_manager_find_driver(mount->manager, mount->id.driver)) {
                cleanup_free char *why = text_format(
                        "driver name %s not found in the list of registered CSI drivers",
                        mount->id.driver);

                set_error(mount, CSI_STEP_UNPUBLISH, strna(why));
        } else if (mount->may_be_published)
                call_unmount(mount, CSI_STEP_UNPUBLISH, csi_mount_publish_path(mount));
        else
                csi_mount_call(mount, CSI_STEP_UNMOUNT, &(Buffer){ 0 });
        return false;
}

/* ---- answers ---- */

void csi_mount_repeat(CsiMount *mount) {
        bool is_expansion = mount->step >= CSI_STEP_CAN_EXPAND;

        if (is_expansion)
                mount->claim_due = now_boottime_usec();
        else
                mount->due = now_boottime_usec();
        csi_mount_release(mount);
}

unsigned csi_capabilities_of(const CsiNodeAnswer *answer) {
        unsigned capabilities = 0;

        for (size_t i = 0; answer && i < answer->capabilities.n; i++)
                if (answer->capabilities.items[i] > 0 && answer->capabilities.items[i] < 32)
                        capabilities |= 1U << answer->capabilities.items[i];
        return capabilities;
}

void csi_mount_take_capabilities(CsiMount *mount, const CsiNodeAnswer *answer) {
        CsiNodeDriver *driver = csi_manager_find_driver(mount->manager, mount->id.driver);

        mount->capabilities = csi_capabilities_of(answer);
        if (driver) {
                driver->capabilities = mount->capabilities;
                driver->has_capabilities = true;
        }
}

/* The volume was unstaged in order to be staged with another label. */
static void restage_volume(CsiMount *mount) {
        CsiStage *stage = find_stage(mount);
        int r = remove_stage_files(mount);

        if (r >= 0 && stage)
                csi_stage_free(mount->manager, stage);
        if (r < 0)
                fail_operation(mount, CSI_STEP_RESTAGE, strerror(-r));
        else
                stage_volume(mount);
}

static void continue_mount(CsiMount *mount) {
        CsiStage *stage = find_stage(mount);

        DIE_AT("csi.mounted");
        if (mount->step == CSI_STEP_STAGE && stage)
                stage->is_staged = true;
        if (mount->is_unwanted && mount->step != CSI_STEP_PUBLISH)
                end_operation(mount, 0);
        else if (mount->step == CSI_STEP_PUBLISH)
                finish_mount(mount);
        else if (mount->step == CSI_STEP_RESTAGE)
                restage_volume(mount);
        else if (mount->step == CSI_STEP_MOUNT && is_staging(mount))
                stage_volume(mount);
        else
                publish_volume(mount);
}

void csi_mount_answer(CsiMount *mount, int64_t code, const char *error,
                      const CsiNodeAnswer *answer) {
        CsiStep step = mount->step;

        if (step >= CSI_STEP_CAN_EXPAND) {
                csi_expand_answer(mount, code, error, answer);
                return;
        }
        if (code == 0 && (step == CSI_STEP_MOUNT || step == CSI_STEP_UNMOUNT))
                csi_mount_take_capabilities(mount, answer);
        if (code != 0 && step < CSI_STEP_UNPUBLISH)
                fail_mount(mount, code, strna(error));
        else if (code != 0)
                fail_operation(mount, step, strna(error));
        else if (step < CSI_STEP_UNPUBLISH)
                continue_mount(mount);
        else if (step == CSI_STEP_UNPUBLISH)
                end_publish(mount);
        else if (step == CSI_STEP_UNMOUNT && driver_can(mount, CSI_STAGE_UNSTAGE_VOLUME))
                call_unmount(mount, CSI_STEP_UNSTAGE, csi_mount_stage_path(mount));
        else
                end_stage(mount);
}
