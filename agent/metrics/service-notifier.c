/* SPDX-License-Identifier: Apache-2.0 */

/* Messages to systemd with sd_notify(3); see the header. Other modules determine their content. */

#include "agent/metrics/service-notifier.h"

#include "common/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <systemd/sd-daemon.h>

struct ServiceNotifier {
        char *last_status; /* the last status that was sent */
        bool is_ready;
        bool is_stopping;
};

ServiceNotifier *service_notifier_new(void) {
        return calloc(1, sizeof(ServiceNotifier));
}

bool service_notifier_has_socket(const ServiceNotifier *notifier) {
        return getenv("NOTIFY_SOCKET") != NULL;
}

ServiceNotifier *service_notifier_free(ServiceNotifier *notifier) {
        if (notifier)
                free(notifier->last_status);
        free(notifier);
        return NULL;
}

void service_notifier_ready(ServiceNotifier *notifier) {
        if (notifier->is_ready)
                return;
        notifier->is_ready = true;
        (void) sd_notify(false, "READY=1");
}

void service_notifier_begin_reload(ServiceNotifier *notifier) {
        struct timespec now;

        if (!notifier->is_ready || clock_gettime(CLOCK_MONOTONIC, &now) < 0)
                return;
        (void) sd_notifyf(false, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
                          (uint64_t) now.tv_sec * USEC_PER_SEC + (uint64_t) now.tv_nsec / 1000);
}

void service_notifier_end_reload(ServiceNotifier *notifier) {
        if (notifier->is_ready)
                (void) sd_notify(false, "READY=1");
}

void service_notifier_stopping(ServiceNotifier *notifier) {
        if (notifier->is_stopping)
                return;
        notifier->is_stopping = true;
        (void) sd_notify(false, "STOPPING=1");
}

void service_notifier_extend_stop_timeout(ServiceNotifier *notifier, uint64_t usec) {
        (void) sd_notifyf(false, "EXTEND_TIMEOUT_USEC=%" PRIu64, usec);
}

void service_notifier_status(ServiceNotifier *notifier, const char *status) {
        char *copy;

        if (streq_ptr(notifier->last_status, status))
                return;
        (void) sd_notifyf(false, "STATUS=%s", status);
        copy = strdup(status);
        free(notifier->last_status);
        notifier->last_status = copy;
}
