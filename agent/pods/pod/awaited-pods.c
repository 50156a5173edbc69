/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/awaited-pods.h"

#include "agent/model/own-values.h"
#include "agent/model/pod-order.h"
#include "agent/pods/pod/event-recorder.h"
#include "common/cleanup.h"

#include <stdlib.h>
#include <string.h>

/* Takes over the message. The number of waiting pods is counted, so that nothing is done if there
 * are none. */
static void set_awaited_message_take(AwaitedPods *awaited, const PodInstance *pod, char *message) {
        pod->context->n_awaiting += (message != NULL);
        pod->context->n_awaiting -= (awaited->message != NULL);
        free(awaited->message);
        awaited->message = message;
}

static void report_awaited_pods(const PodInstance *pod, PodOrderState state, const char *message) {
        bool is_problem = state == POD_ORDER_BROKEN;

        if (is_problem)
                log_warning("Pod '%s' is not started: %s", pod->description, message);
        else
                log_info("Pod '%s' is not started yet: %s", pod->description, message);
        record_pod_event(pod, NULL, is_problem ? POD_EVENT_WARNING : POD_EVENT_NORMAL,
                         "WaitingForPods", "%s", message);
}

bool awaited_pods_check(AwaitedPods *awaited, const PodInstance *pod) {
        const PodContext *context = pod->context;
        cleanup_free char *message = NULL;
        PodOrderState state;

        if (context->is_draining)
                return false;
        if (!own_pod_value(pod->pod, OWN_KEY_AFTER)) {
                set_awaited_message_take(awaited, pod, NULL);
                return true;
        }
        state = context->find_awaited_pods(pod->pod, &message, context->userdata);
        if (state == POD_ORDER_MET) {
                set_awaited_message_take(awaited, pod, NULL);
                return true;
        }
        if (streq_ptr(awaited->message, message))
                return false;
        report_awaited_pods(pod, state, strna(message));
        set_awaited_message_take(awaited, pod, TAKE_PTR(message));
        pod_instance_mark_dirty(pod); /* the status has changed */
        return false;
}

void awaited_pods_done(AwaitedPods *awaited, const PodInstance *pod) {
        if (awaited->message)
                set_awaited_message_take(awaited, pod, NULL);
}
