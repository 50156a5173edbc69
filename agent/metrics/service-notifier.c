/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/metrics/metrics.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <inttypes.h>
#include <time.h>

#include <systemd/sd-daemon.h>

struct ServiceNotifier {
        char *last_status; /* as sent last */
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

void service_notifier_status(ServiceNotifier *notifier, const AgentMetrics *counts) {
        cleanup_free char *status = agent_metrics_format_status(counts);

        if (!status || (notifier->last_status && streq(status, notifier->last_status)))
                return;
        (void) sd_notifyf(false, "STATUS=%s", status);
        free(notifier->last_status);
        notifier->last_status = TAKE_PTR(status);
}

static const char *plural_suffix(unsigned n) {
        return n == 1 ? "" : "s";
}

static void write_manifest_summary(FILE *out, const AgentMetrics *counts) {
        if (counts->manifests_broken == 0)
                return;
        fprintf(out, "; %u manifest%s broken", counts->manifests_broken,
                plural_suffix(counts->manifests_broken));
        if (counts->manifest_error)
                fprintf(out, ": %s", counts->manifest_error);
}

/* systemd takes one line: what a sentence quotes may have others. */
static void replace_control_characters(char *text) {
        for (; *text; text++)
                if ((unsigned char) *text < ' ')
                        *text = ' ';
}

char *agent_metrics_format_status(const AgentMetrics *counts) {
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        fprintf(out, "%u pod%s, %u running", counts->pods, plural_suffix(counts->pods),
                counts->pods_running);
        if (counts->manifest_directory_error)
                fprintf(out, "; manifests cannot be read: %s", counts->manifest_directory_error);
        write_manifest_summary(out, counts);
        if (counts->archives_broken > 0)
                fprintf(out, "; %u image archive%s broken", counts->archives_broken,
                        plural_suffix(counts->archives_broken));
        if (counts->api_server_error)
                fprintf(out, "; API server: %s", counts->api_server_error);
        if (fclose(out) != 0)
                return NULL;
        replace_control_characters(text);
        return TAKE_PTR(text);
}
