/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Readiness, reloads and status for systemd (sd_notify). If NOTIFY_SOCKET is not set, nothing is
 * sent. */

#include "common/macros.h"

#include <stdint.h>

typedef struct ServiceNotifier ServiceNotifier;

/* NULL: out of memory. */
ServiceNotifier *service_notifier_new(void);

/* Whether anything receives the messages; if not, there is no need to format a status. */
bool service_notifier_has_socket(const ServiceNotifier *notifier);

/* READY=1, sent once: after the result of the first scan of the manifests has been applied. */
void service_notifier_ready(ServiceNotifier *notifier);

/* STATUS=, if it has changed. Cheap enough to be called every turn. */
void service_notifier_status(ServiceNotifier *notifier, const char *status);

/* RELOADING=1 and, after the new configuration has been applied, READY=1; neither is sent before
 * the first READY=1. */
void service_notifier_begin_reload(ServiceNotifier *notifier);
void service_notifier_end_reload(ServiceNotifier *notifier);
static inline void service_notifier_end_reloadp(ServiceNotifier **notifier) {
        service_notifier_end_reload(*notifier);
}

/* STOPPING=1, once. */
void service_notifier_stopping(ServiceNotifier *notifier);

/* EXTEND_TIMEOUT_USEC=: stopping may take this long from now on, and systemd waits for that long.
 */
void service_notifier_extend_stop_timeout(ServiceNotifier *notifier, uint64_t usec);

ServiceNotifier *service_notifier_free(ServiceNotifier *notifier);
DEFINE_CLEANUP(ServiceNotifier *, service_notifier_free)
