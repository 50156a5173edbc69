/* SPDX-License-Identifier: Apache-2.0 */

/* Events of sets. Their reasons and sentences are those of Kubernetes' controller. */

#include "agent/daemonset/controller-private.h"
#include "common/cleanup.h"

#include <stdarg.h>
#include <stdio.h>

void daemonset_state_record_event(const DaemonSetController *controller,
                                  const DaemonSetState *state, PodEventKind kind,
                                  const char *reason, const char *format, ...) {
        cleanup_free char *message = NULL;
        va_list ap;
        int n;

        va_start(ap, format);
        n = vasprintf(&message, format, ap);
        va_end(ap);
        if (n < 0) {
                message = NULL;
                return;
        }
        controller->config.on_event(&(PodEvent){ .daemonset = state->set,
                                                 .kind = kind,
                                                 .reason = reason,
                                                 .message = message },
                                    controller->config.userdata);
}
