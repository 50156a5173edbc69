/* SPDX-License-Identifier: Apache-2.0 */

/* Helpers of a pass; see the header. The decisions of a pass are in daemonset-sync.c. */

#include "agent/daemonset/sync-pass.h"

#include "common/cleanup.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static int observe_pod(const Pod *pod, const PodStatus *status, void *context) {
        DaemonSetSyncPass *pass = context;

        return observed_pods_add(&pass->observed, pod, status,
                                 orphan_pods_contain(pass->orphans, pod->metadata.uid));
}

int sync_pass_observe_pods(DaemonSetSyncPass *pass) {
        observed_pods_done(&pass->observed);
        return pass->pod_access->for_each(pass->pods, observe_pod, pass);
}

void sync_pass_requeue_at(DaemonSetSyncPass *pass, uint64_t when) {
        if (when > 0 && (pass->requeue_at == 0 || when < pass->requeue_at))
                pass->requeue_at = when;
}

void record_daemonset_event(const DaemonSetSyncPass *pass, const DaemonSet *set, PodEventKind kind,
                            const char *reason, const char *format, ...) {
        cleanup_free char *message = NULL;
        va_list ap;

        va_start(ap, format);
        message = format_message(format, ap);
        va_end(ap);
        if (!message)
                return;
        pass->on_event(
                &(PodEvent){ .daemonset = set, .kind = kind, .reason = reason, .message = message },
                pass->event_userdata);
}
