/* SPDX-License-Identifier: Apache-2.0 */
/* The expansion of mounted volumes (kubelet: csiPlugin.NodeExpand). The claim, which is read
 * elsewhere, determines whether an expansion is needed. */

#include "agent/csi/csi-manager-private.h"
#include "agent/csi/csi-messages.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/failpoint.h"
#include "common/list.h"
#include "common/text.h"

#include <errno.h>

/* ---- sizes ---- */

static void set_bytes(const CsiMount *mount, int64_t bytes) {
        list_foreach(other, mount->manager->mounts)
                if (csi_mount_is_of(other, mount))
                        other->bytes = bytes;
}

int64_t csi_manager_volume_size(CsiManager *manager, const char *uid, const CsiVolume *volume) {
        CsiMount *mount = csi_manager_find_mount(manager, uid, volume->name);

        if (!mount)
                return 0;
        list_foreach(other, manager->mounts)
                if (mount->bytes == 0 && csi_mount_is_of(other, mount))
                        mount->bytes = other->bytes;
        if (mount->bytes == 0 && volume->claim)
                mount->bytes = volume->claim->claim.status.capacity.storage.value;
        return mount->bytes;
}

void csi_manager_set_volume_size(CsiManager *manager, const char *uid, const CsiVolume *volume,
                                 int64_t bytes) {
        const CsiMount *mount = csi_manager_find_mount(manager, uid, volume->name);

        if (mount)
                set_bytes(mount, bytes);
}

void csi_manager_give_up_expansion(CsiManager *manager, const char *uid, const CsiVolume *volume,
                                   int64_t bytes) {
        CsiMount *mount = csi_manager_find_mount(manager, uid, volume->name);

        if (mount)
                mount->given_up_bytes = bytes;
}

/* ---- the end of an expansion ---- */

static void end_expansion(CsiMount *mount, CsiExpansionError error) {
        mount->expansion = error;
        mount->is_expansion_new = true;
        csi_mount_release(mount);
        mount->manager->config.on_pod_changed(mount->pod_uid, mount->manager->config.userdata);
}

static void finish_expansion(CsiMount *mount) {
        DIE_AT("csi.expanded");
        mount->expanded_bytes = mount->request->bytes;
        text_replace(&mount->expansion_error, NULL);
        mount->expansion_delay = 0;
        end_expansion(mount, CSI_EXPANSION_DONE);
}

/* Takes the message; NULL: out of memory. */
static void fail_expansion(CsiMount *mount, CsiExpansionError error, char *why) {
        if (error == CSI_EXPANSION_FAILED && mount->expansion_error)
                error = CSI_EXPANSION_FAILED_AGAIN;
        free(mount->expansion_error);
        mount->expansion_error = why;
        mount->is_expansion_refused = error == CSI_EXPANSION_REFUSED;
        mount->expansion_delay = back_off_next_delay(mount->expansion_delay, &csi_back_off);
        mount->expansion_due = now_boottime_usec() + mount->expansion_delay;
        mount->claim_due =
                mount->is_expansion_refused ? csi_republish_time() : mount->expansion_due;
        end_expansion(mount, error);
}

/* The operation only had to find out whether the driver can expand the volume. */
static void end_question(CsiMount *mount, int64_t code) {
        if (code != 0)
                mount->claim_due = csi_republish_time();
        csi_mount_release(mount);
        if (code == 0)
                mount->manager->config.on_pod_changed(mount->pod_uid,
                                                      mount->manager->config.userdata);
}

static CsiExpansionError expansion_error_of(int64_t code) {
        enum {
                INVALID_ARGUMENT = 3,
                NOT_FOUND = 5,
                FAILED_PRECONDITION = 9,
                OUT_OF_RANGE = 11
        };

        if (code == FAILED_PRECONDITION)
                return CSI_EXPANSION_REFUSED;
        return code == INVALID_ARGUMENT || code == NOT_FOUND || code == OUT_OF_RANGE
                       ? CSI_EXPANSION_INFEASIBLE
                       : CSI_EXPANSION_FAILED;
}

/* ---- calls ---- */

static void call_expand(CsiMount *mount) {
        const CsiMountRequest *request = mount->request;
        cleanup_free char *path = csi_mount_publish_path(mount);
        cleanup_free char *staging = csi_mount_stage_path(mount);
        cleanup_buffer Buffer body = { 0 };
        int r = encode_csi_expand_request(
                &(CsiExpandRequest){ .volume_id = mount->id.handle,
                                     .path = path,
                                     .staging_path = staging,
                                     .bytes = request->bytes,
                                     .is_block = mount->is_block,
                                     .fs_type = request->fs_type,
                                     .mount_flags = request->mount_options,
                                     .access_mode = csi_mount_access_mode(mount),
                                     .secrets = &request->expand_secrets },
                &body);

        DIE_AT("csi.expanding");
        if (r < 0 || !path || !staging)
                fail_expansion(mount, CSI_EXPANSION_FAILED, strdup(strerror(r < 0 ? -r : ENOMEM)));
        else
                csi_mount_call(mount, CSI_STEP_EXPAND, &body);
        if (body.data)
                explicit_bzero(body.data, body.length);
}

static void continue_expansion(CsiMount *mount) {
        if (mount->capabilities & 1U << CSI_EXPAND_VOLUME)
                call_expand(mount);
        else
                fail_expansion(mount, CSI_EXPANSION_UNSUPPORTED,
                               text_format("NodeExpand is not supported by the CSI driver %s",
                                           mount->id.driver));
}

void csi_expand_answer(CsiMount *mount, int64_t code, const char *error,
                       const CsiNodeAnswer *answer) {
        bool is_question = mount->step == CSI_STEP_CAN_EXPAND;

        if (is_question && code == 0)
                csi_mount_take_capabilities(mount, answer);
        if (!mount->request)
                end_question(mount, code);
        else if (is_question && code != 0)
                fail_expansion(mount, CSI_EXPANSION_FAILED,
                               text_format("Expander.NodeExpand failed to check if node supports "
                                           "expansion : %s",
                                           strna(error)));
        else if (is_question)
                continue_expansion(mount);
        else if (code == 0)
                finish_expansion(mount);
        else { /* with the kubelet's punctuation */
                CsiExpansionError kind = expansion_error_of(code);

                fail_expansion(mount, kind,
                               text_format("Expander.NodeExpand failed to expand the volume%s %s",
                                           kind == CSI_EXPANSION_INFEASIBLE ? "" : " :",
                                           strna(error)));
        }
}

static bool can_start_expansion(const CsiMount *mount) {
        return mount->step == CSI_STEP_NONE && !csi_mount_is_busy(mount) &&
               csi_manager_find_driver(mount->manager, mount->id.driver);
}

/* ---- for pods ---- */

/* 0: no new result. */
static int take_result(CsiMount *mount, int64_t bytes, CsiExpansionError *ret_error,
                       Error *reterr) {
        if (!mount->is_expansion_new)
                return 0;
        mount->is_expansion_new = false;
        *ret_error = mount->expansion;
        if (mount->expansion != CSI_EXPANSION_DONE)
                return error_setf(reterr, EIO, "%s", strna(mount->expansion_error));
        set_bytes(mount, mount->expanded_bytes);
        return mount->bytes >= bytes;
}

static int start_expansion(CsiMount *mount, const Pod *pod, const CsiVolume *volume,
                           int64_t bytes) {
        int r = csi_mount_request_new(pod, volume, &mount->request);

        if (r < 0)
                return r;
        mount->request->bytes = bytes;
        csi_mount_call(mount, CSI_STEP_CAN_EXPAND, &(Buffer){ 0 });
        return 0;
}

int csi_manager_expand(CsiManager *manager, const Pod *pod, const CsiVolume *volume, int64_t bytes,
                       CsiExpansionError *ret_error, Error *reterr) {
        CsiMount *mount = csi_manager_find_mount(manager, pod->metadata.uid, volume->name);
        int r;

        if (!mount || mount->is_unwanted || !mount->may_be_published)
                return 0;
        r = take_result(mount, bytes, ret_error, reterr);
        if (r != 0)
                return r;
        if (mount->is_expansion_refused || mount->given_up_bytes == bytes)
                return 0;
        if (mount->expansion_due <= now_boottime_usec() && can_start_expansion(mount))
                r = start_expansion(mount, pod, volume, bytes);
        if (r >= 0)
                r = take_result(mount, bytes, ret_error, reterr);
        return r != 0 ? r
                      : error_setf(reterr, EAGAIN,
                                   "volume \"%s\" is being expanded by the CSI driver %s",
                                   volume->name, volume->driver);
}

bool csi_manager_claim_is_due(CsiManager *manager, const char *uid, const CsiVolume *volume) {
        CsiMount *mount = csi_manager_find_mount(manager, uid, volume->name);
        const CsiNodeDriver *driver =
                mount ? csi_manager_find_driver(manager, mount->id.driver) : NULL;
        bool is_due;

        if (!driver || mount->is_unwanted || !mount->may_be_published || !volume->claim ||
            volume->is_read_only)
                return false;
        if (!driver->has_capabilities) {
                if (can_start_expansion(mount) && mount->claim_due == USEC_INFINITY)
                        csi_mount_call(mount, CSI_STEP_CAN_EXPAND, &(Buffer){ 0 });
                return false;
        }
        is_due = mount->is_claim_due;
        mount->is_claim_due = false;
        if (!(driver->capabilities & 1U << CSI_EXPAND_VOLUME))
                return false;
        if (mount->claim_due == USEC_INFINITY) {
                mount->claim_due = csi_republish_time();
                csi_manager_arm(manager);
        }
        return is_due;
}
