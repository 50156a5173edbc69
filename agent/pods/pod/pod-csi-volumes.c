/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/pod-csi-volumes.h"

#include "agent/bundle/csi-volumes.h"
#include "common/cleanup.h"

static int mount_csi_volume(const PodInstance *pod, const Volume *volume, Error *reterr) {
        cleanup_with(csi_volume_done) CsiVolume csi = { 0 };
        int r = find_csi_volume(pod->context->bundle, pod->pod, volume, &csi, reterr);

        if (r < 0)
                return error_prefixf(reterr, r, "MountVolume.SetUp failed for volume \"%s\" ",
                                     volume->name);
        return r == 0 || !pod->context->csi
                       ? 0
                       : csi_manager_mount(pod->context->csi, pod->pod, &csi, reterr);
}

/* All are started, and a failure is reported rather than that another one is awaited. */
int pod_mount_csi_volumes(const PodInstance *pod, Error *reterr) {
        const PodSpec *spec = &pod->pod->spec;
        int result = 0;

        for (size_t i = 0; i < spec->volumes.n; i++) {
                cleanup_error Error error = ERROR_NULL;
                int r = mount_csi_volume(pod, &spec->volumes.items[i], &error);

                if (r >= 0 || (result < 0 && (r == -EAGAIN || result != -EAGAIN)))
                        continue;
                error_done(reterr);
                result = error_setf(reterr, -r, "%s", error_message(&error, r));
        }
        return result;
}
