/* SPDX-License-Identifier: Apache-2.0 */

/* Events of sets. Their reasons and sentences are those of Kubernetes' controller. */

#include "agent/daemons-private.h"
#include "common/cleanup.h"

#include <stdarg.h>
#include <stdio.h>

void daemon_tell(const Daemons *daemons, const Daemon *daemon, PodEventKind kind,
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
        daemons->config.on_event(&(PodEvent){ .daemonset = daemon->set,
                                              .kind = kind,
                                              .reason = reason,
                                              .message = message },
                                 daemons->config.userdata);
}
