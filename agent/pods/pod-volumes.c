/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod-volumes.h"

#include "common/cleanup.h"

bool pod_has_data_volume(const Pod *pod) {
        for (size_t i = 0; i < pod->spec.volumes.n; i++)
                if (volume_is_data(&pod->spec.volumes.items[i]))
                        return true;
        return false;
}

bool pod_has_claim(const Pod *pod) {
        for (size_t i = 0; i < pod->spec.volumes.n; i++)
                if (pod->spec.volumes.items[i].persistent_volume_claim ||
                    pod->spec.volumes.items[i].ephemeral)
                        return true;
        return false;
}

static void set_volume_error(PodVolumes *volumes, const PodInstance *pod, const char *message) {
        if (streq_ptr(volumes->error, message))
                return;
        free(volumes->error);
        volumes->error = message ? strdup(message) : NULL;
        if (message)
                log_warning("Pod '%s': %s; the volume stays as it was", pod->description, message);
}

void pod_volumes_update(PodVolumes *volumes, const PodInstance *pod) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (!pod_has_data_volume(pod->pod))
                return;
        r = bundle_update_volumes(pod->context->bundle, pod->pod, &error);
        set_volume_error(volumes, pod, r < 0 ? error_message(&error, r) : NULL);
}

void pod_volumes_done(PodVolumes *volumes) {
        free(volumes->error);
        *volumes = (PodVolumes){ 0 };
}
