/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/pod-resize.h"

#include "agent/pods/pod/event-recorder.h"
#include "agent/pods/pod/slices.h"
#include "common/clock.h"

#include <stdlib.h>

/* Memory that is in use is rarely freed immediately. */
static const BackOffLimits resize_back_off = { 1 * USEC_PER_SEC, 60 * USEC_PER_SEC };

static int on_pod_resize_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        PodResize *resize = userdata;

        resize->on_retry(resize->userdata);
        return 0;
}

static void set_resize_error(PodResize *resize, const char *message) {
        const PodInstance *pod = resize->pod;

        if (!streq_ptr(resize->error, message)) {
                free(resize->error);
                resize->error = message ? strdup(message) : NULL;
                if (message) {
                        log_warning("Pod '%s': %s, trying again", pod->description, message);
                        record_pod_event(pod, NULL, POD_EVENT_WARNING, "ResizeError", "%s",
                                         message);
                }
                pod_instance_mark_dirty(pod);
        }
        resize->timer = sd_event_source_disable_unref(resize->timer);
        resize->delay_usec =
                message ? back_off_next_delay(resize->delay_usec, &resize_back_off) : 0;
        if (message)
                (void) sd_event_add_time_relative(pod->context->event, &resize->timer,
                                                  CLOCK_BOOTTIME, resize->delay_usec, 0,
                                                  on_pod_resize_retry, resize);
}

void pod_resize_apply(PodResize *resize, const RunningContainer *running, size_t n) {
        const PodInstance *pod = resize->pod;
        cleanup_error Error error = ERROR_NULL;
        int r = bundle_resize_pod(pod->context->bundle, pod->pod, running, n, &error);

        slices_resize(pod->context, pod->pod, running, n);
        set_resize_error(resize, r < 0 ? error_message(&error, r) : NULL);
}

void pod_resize_reset_back_off(PodResize *resize) {
        resize->delay_usec = 0;
}

void pod_resize_done(PodResize *resize) {
        free(resize->error);
        resize->timer = sd_event_source_disable_unref(resize->timer);
}
