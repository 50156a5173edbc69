/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/pod-csi-volumes.h"

#include "agent/bundle/csi-volumes.h"
#include "agent/pods/pod/event-recorder.h"
#include "agent/pods/pod/pod-volume-expansion.h"
#include "common/cleanup.h"

static bool volume_may_be_csi(const Volume *volume) {
        return volume->csi || volume->persistent_volume_claim || volume->ephemeral;
}

static int mount_csi_volume(const PodInstance *pod, const Volume *volume, bool is_starting,
                            Error *reterr) {
        cleanup_with(csi_volume_done) CsiVolume csi = { 0 };
        int r = find_csi_volume(pod->context->bundle, pod->pod, volume, &csi, reterr);

        if (r > 0)
                r = csi_volume_add_tokens(pod->context->bundle, pod->pod, &csi, reterr);
        if (r >= 0)
                r = csi_volume_add_selinux_label(pod->context->bundle, pod->pod, volume, &csi,
                                                 reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "MountVolume.SetUp failed for volume \"%s\" ",
                                     volume->name);
        if (!csi.driver || !pod->context->csi)
                return 0;
        r = csi_manager_mount(pod->context->csi, pod->pod, &csi, reterr);
        return r < 0 || !is_starting ? r : pod_expand_new_volume(pod, &csi, reterr);
}

const char *pod_volume_event_reason(const char *message) {
        static const char map[] = "MapVolume.";

        return strncmp(message, map, strlen(map)) == 0 ? "FailedMapVolume" : "FailedMount";
}

bool pod_has_csi_volume(const Pod *pod) {
        for (size_t i = 0; i < pod->spec.volumes.n; i++)
                if (volume_may_be_csi(&pod->spec.volumes.items[i]))
                        return true;
        return false;
}

/* A missing object or token has no effect at this point. */
static void check_running_csi_volume(const PodInstance *pod, const Volume *volume) {
        cleanup_with(csi_volume_done) CsiVolume csi = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = find_csi_volume(pod->context->bundle, pod->pod, volume, &csi, NULL);

        if (r <= 0)
                return;
        r = csi_manager_check_running(pod->context->csi, pod->pod->metadata.uid, &csi, &error);
        if (r > 0)
                r = mount_csi_volume(pod, volume, /* is_starting= */ false, &error);
        if (r < 0 && r != -EAGAIN)
                record_pod_event(pod, NULL, POD_EVENT_WARNING,
                                 pod_volume_event_reason(error_message(&error, r)), "%s",
                                 error_message(&error, r));
        pod_expand_running_volume(pod, &csi);
}

void pod_check_running_csi_volumes(const PodInstance *pod) {
        const PodSpec *spec = &pod->pod->spec;

        for (size_t i = 0; pod->context->csi && i < spec->volumes.n; i++)
                if (volume_may_be_csi(&spec->volumes.items[i]))
                        check_running_csi_volume(pod, &spec->volumes.items[i]);
}

/* The operations of all volumes are started; a failure takes precedence over an operation in
 * progress. */
int pod_mount_csi_volumes(const PodInstance *pod, Error *reterr) {
        const PodSpec *spec = &pod->pod->spec;
        int result = 0;

        for (size_t i = 0; i < spec->volumes.n; i++) {
                cleanup_error Error error = ERROR_NULL;
                int r = mount_csi_volume(pod, &spec->volumes.items[i], /* is_starting= */ true,
                                         &error);

                if (r >= 0 || (result < 0 && (r == -EAGAIN || result != -EAGAIN)))
                        continue;
                error_done(reterr);
                result = error_setf(reterr, -r, "%s", error_message(&error, r));
        }
        return result;
}
