/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Readiness, reloads and status for systemd (sd_notify). If NOTIFY_SOCKET is not set, nothing is
 * sent. */

#include "common/macros.h"

#include <stdint.h>

typedef struct ServiceNotifier ServiceNotifier;

/* NULL: out of memory. */
ServiceNotifier *service_notifier_new(void);

/* Messages are received: only then is it worth the work to make a status. */
bool service_notifier_has_socket(const ServiceNotifier *notifier);

/* READY=1, once: after the first scan of the manifests has been acted on. */
void service_notifier_ready(ServiceNotifier *notifier);

/* STATUS=, if it has changed. Cheap to call every turn. */
void service_notifier_status(ServiceNotifier *notifier, const char *status);

/* RELOADING=1 and, after the new configuration has been acted on, READY=1; neither is sent before
 * the first READY=1. */
void service_notifier_begin_reload(ServiceNotifier *notifier);
void service_notifier_end_reload(ServiceNotifier *notifier);
static inline void service_notifier_end_reloadp(ServiceNotifier **notifier) {
        service_notifier_end_reload(*notifier);
}

/* STOPPING=1, once. */
void service_notifier_stopping(ServiceNotifier *notifier);

/* EXTEND_TIMEOUT_USEC=: the stop takes that long from now on, and systemd waits for it. */
void service_notifier_extend_stop_timeout(ServiceNotifier *notifier, uint64_t usec);

ServiceNotifier *service_notifier_free(ServiceNotifier *notifier);
DEFINE_CLEANUP(ServiceNotifier *, service_notifier_free)
