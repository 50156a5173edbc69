/* SPDX-License-Identifier: Apache-2.0 */
/* This file keeps no state: the claim in the API server and the size of the volume on this node
 * determine the next step, so that a new agent continues with it. */

#include "agent/pods/pod/pod-volume-expansion.h"

#include "agent/bundle/csi-volumes.h"
#include "agent/pods/pod/event-recorder.h"
#include "common/cleanup.h"
#include "common/text.h"

#include <errno.h>

/* An event for the pod and one for the claim. */
static void record_volume_event(const PodInstance *pod, const CsiVolume *volume, PodEventKind kind,
                                const char *reason, const char *result, const char *details) {
        cleanup_free char *message =
                text_format("MountVolume.NodeExpandVolume %s for volume \"%s\" %s", result,
                            volume->name, details);
        const PodContext *context = pod->context;

        if (!message || !context->on_event)
                return;
        record_pod_event(pod, NULL, kind, reason, "%s", message);
        context->on_event(&(PodEvent){ .claim = volume->claim,
                                       .kind = kind,
                                       .reason = reason,
                                       .message = message },
                          context->userdata);
}

static void report_expansion(const PodInstance *pod, const CsiVolume *volume, ClaimUpdateKind kind,
                             const char *size, const char *message) {
        const ClaimAccess *claims = &pod->context->bundle->claims;

        claims->update(volume->claim, &(ClaimUpdate){ kind, size, message }, claims->userdata);
}

/* Whether the volume keeps its size, so that the pod can continue without an expansion. */
static bool take_failure(const PodInstance *pod, const CsiVolume *volume,
                         const VolumeExpansion *plan, CsiExpansionError failure,
                         const char *message) {
        bool is_infeasible = failure == CSI_EXPANSION_INFEASIBLE ||
                             (failure == CSI_EXPANSION_FAILED_AGAIN && plan->is_outdated);

        if (failure == CSI_EXPANSION_UNSUPPORTED && (!plan->has_status || plan->is_reported)) {
                csi_manager_set_volume_size(pod->context->csi, pod->pod->metadata.uid, volume,
                                            volume->pv_object->volume.capacity.storage.value);
                return true;
        }
        if (plan->has_status && is_infeasible)
                csi_manager_give_up_expansion(pod->context->csi, pod->pod->metadata.uid, volume,
                                              plan->size->value);
        if (plan->has_status)
                report_expansion(pod, volume,
                                 is_infeasible ? CLAIM_EXPANSION_INFEASIBLE
                                               : CLAIM_EXPANSION_FAILED,
                                 NULL, message);
        return failure == CSI_EXPANSION_REFUSED;
}

static int call_driver(const PodInstance *pod, CsiVolume *volume, const VolumeExpansion *plan,
                       Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        CsiExpansionError failure = CSI_EXPANSION_DONE;
        int r = csi_volume_add_expand_secret(pod->context->bundle, volume, &error);

        if (r >= 0)
                r = csi_manager_expand(pod->context->csi, pod->pod, volume, plan->size->value,
                                       &failure, &error);
        if (r == -EIO && failure != CSI_EXPANSION_DONE &&
            take_failure(pod, volume, plan, failure, error_message(&error, r)))
                return 0;
        if (r < 0)
                return error_setf(reterr, -r, "%s", error_message(&error, r));
        if (r == 0)
                return 0;
        record_volume_event(pod, volume, POD_EVENT_NORMAL, "FileSystemResizeSuccessful",
                            "succeeded", pod->context->node->name);
        if (!plan->is_reported)
                report_expansion(pod, volume, CLAIM_EXPANDED, plan->size->text, NULL);
        return 0;
}

static int expand_volume(const PodInstance *pod, CsiVolume *volume, bool is_starting,
                         Error *reterr) {
        VolumeExpansion plan;

        if (!volume->claim)
                return 0;
        plan = plan_volume_expansion(
                volume->claim, volume->pv_object,
                csi_manager_volume_size(pod->context->csi, pod->pod->metadata.uid, volume),
                volume->is_read_only);
        if (plan.step != VOLUME_EXPANSION_CALL)
                csi_manager_give_up_expansion(pod->context->csi, pod->pod->metadata.uid, volume, 0);
        switch (plan.step) {
        case VOLUME_EXPANSION_READ_ONLY:
                if (is_starting)
                        record_volume_event(pod, volume, POD_EVENT_WARNING,
                                            "FileSystemResizeFailed", "failed",
                                            "requested read-only file system");
                return 0;
        case VOLUME_EXPANSION_MARK:
                report_expansion(pod, volume, CLAIM_EXPANDING, NULL, NULL);
                return error_setf(reterr, EAGAIN,
                                  "volume \"%s\" is expanded once its claim requests it",
                                  volume->name);
        case VOLUME_EXPANSION_CALL:
                return call_driver(pod, volume, &plan, reterr);
        case VOLUME_EXPANSION_NONE:
                break;
        }
        return 0;
}

int pod_expand_new_volume(const PodInstance *pod, CsiVolume *volume, Error *reterr) {
        cleanup_error Error error = ERROR_NULL;
        int r = expand_volume(pod, volume, /* is_starting= */ true, &error);

        if (r >= 0)
                return 0;
        if (r == -EAGAIN)
                return error_setf(reterr, EAGAIN, "%s", error_message(&error, r));
        return error_setf(reterr, EIO, "%s failed while expanding volume for volume \"%s\" : %s",
                          volume->is_block ? "MapVolume.MarkVolumeAsMounted" : "MountVolume.Setup",
                          volume->name, error_message(&error, r));
}

void pod_expand_running_volume(const PodInstance *pod, CsiVolume *volume) {
        const ClaimAccess *claims = &pod->context->bundle->claims;
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (csi_manager_claim_is_due(pod->context->csi, pod->pod->metadata.uid, volume))
                claims->refresh(volume->claim, claims->userdata);
        r = expand_volume(pod, volume, /* is_starting= */ false, &error);
        if (r < 0 && r != -EAGAIN)
                record_pod_event(pod, NULL, POD_EVENT_WARNING, "VolumeResizeFailed",
                                 "NodeExpandVolume.NodeExpandVolume failed for volume \"%s\" : %s",
                                 volume->name, error_message(&error, r));
}
