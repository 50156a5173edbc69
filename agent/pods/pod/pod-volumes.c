/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/pod-volumes.h"

#include "common/back-off.h"
#include "common/cleanup.h"
#include "common/clock.h"

static const BackOffLimits volume_update_back_off = { 1 * USEC_PER_SEC, 30 * USEC_PER_SEC };

bool pod_has_data_volume(const Pod *pod) {
        for (size_t i = 0; i < pod->spec.volumes.n; i++)
                if (volume_is_data(&pod->spec.volumes.items[i]))
                        return true;
        return false;
}

static void set_volume_error(PodVolumes *volumes, const char *message) {
        if (streq_ptr(volumes->error, message))
                return;
        free(volumes->error);
        volumes->error = message ? strdup(message) : NULL;
        if (message)
                log_warning("Pod '%s': %s; the volume stays as it was", volumes->pod->description,
                            message);
}

static int on_volume_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        PodVolumes *volumes = userdata;

        volumes->on_retry(volumes->userdata);
        return 0;
}

static void arm_volume_retry(PodVolumes *volumes) {
        int r;

        volumes->delay_usec = back_off_next_delay(volumes->delay_usec, &volume_update_back_off);
        r = sd_event_add_time_relative(volumes->pod->context->event, &volumes->timer,
                                       CLOCK_BOOTTIME, volumes->delay_usec, 0, on_volume_retry,
                                       volumes);
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the volume timer of pod '%s'",
                                       volumes->pod->description);
}

void pod_volumes_update(PodVolumes *volumes) {
        const PodInstance *pod = volumes->pod;
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (!pod_has_data_volume(pod->pod))
                return;
        r = bundle_update_volumes(pod->context->bundle, pod->pod, &error);
        if (r != -EAGAIN) /* an object that is awaited is not a problem yet */
                set_volume_error(volumes, r < 0 ? error_message(&error, r) : NULL);
        volumes->timer = sd_event_source_disable_unref(volumes->timer);
        if (r < 0 && r != -ENOENT)
                arm_volume_retry(volumes);
        else
                volumes->delay_usec = 0;
}

void pod_volumes_done(PodVolumes *volumes) {
        volumes->timer = sd_event_source_disable_unref(volumes->timer);
        free(volumes->error);
        *volumes = (PodVolumes){ 0 };
}
