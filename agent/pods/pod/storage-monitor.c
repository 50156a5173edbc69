/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/storage-monitor.h"

#include "agent/pods/pod/ephemeral-storage.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strv.h"

#define STORAGE_PERIOD_USEC  (10 * USEC_PER_SEC)
#define STORAGE_TIMEOUT_USEC (660 * USEC_PER_SEC)

/* The time limit for the walk through all files; after it, the walk reports the part that has been
 * counted. */
#define STORAGE_WALK_OPTION "--seconds=600"

enum {
        LINE_MAX_BYTES = 32, /* a 64-bit number and a newline */
};

static void arm_storage_timer(StorageMonitor *monitor);

static void enforce_storage_limits(StorageMonitor *monitor, const char *output, size_t n_paths) {
        cleanup_free uint64_t *bytes = calloc(n_paths + 1, sizeof(*bytes));
        cleanup_free char *message = NULL;
        const char *line = output;
        char *end;

        if (!bytes)
                return;
        for (size_t i = 0; i < n_paths; i++) {
                bytes[i] = strtoull(line, &end, 10);
                if (end == line || *end != '\n')
                        return;
                line = end + 1;
        }
        message = find_exceeded_storage_limit(&monitor->pod->pod->spec, bytes, n_paths);
        if (message)
                monitor->on_exceeded(message, monitor->userdata);
}

static void on_storage_measured(const ChildResult *result, void *userdata) {
        StorageMonitor *monitor = userdata;
        const PodInstance *pod = monitor->pod;
        cleanup_strv char **paths = NULL;

        monitor->child = NULL;
        /* After a failure, the next measurement is due as usual. */
        if (child_succeeded(result) &&
            pod_storage_paths(pod->context->bundle, pod->pod, &paths) >= 0)
                enforce_storage_limits(monitor, result->output, strv_length(paths));
        pod_instance_mark_dirty(pod);
}

static int measure_pod_storage(StorageMonitor *monitor) {
        const PodContext *context = monitor->pod->context;
        cleanup_strv char **paths = NULL, **argv = NULL;
        int r = pod_storage_paths(context->bundle, monitor->pod->pod, &paths);

        if (r < 0)
                return r;
        r = strv_append(&argv, context->sandbox->shim_path);
        if (r < 0)
                return r;
        r = strv_append(&argv, "usage");
        if (r < 0)
                return r;
        r = strv_append(&argv, STORAGE_WALK_OPTION);
        if (r < 0)
                return r;
        r = strv_extend(&argv, paths);
        if (r < 0)
                return r;
        return child_spawn(context->event,
                           &(ChildSpec){ .argv = argv,
                                         .output_max = strv_length(paths) * LINE_MAX_BYTES + 1,
                                         .timeout_usec = STORAGE_TIMEOUT_USEC },
                           on_storage_measured, monitor, &monitor->child, NULL);
}

static int on_storage_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        StorageMonitor *monitor = userdata;

        monitor->timer = sd_event_source_disable_unref(monitor->timer);
        if (measure_pod_storage(monitor) < 0)
                arm_storage_timer(monitor);
        return 0;
}

static void arm_storage_timer(StorageMonitor *monitor) {
        (void) sd_event_add_time_relative(monitor->pod->context->event, &monitor->timer,
                                          CLOCK_BOOTTIME, STORAGE_PERIOD_USEC, USEC_PER_SEC,
                                          on_storage_timer, monitor);
}

void storage_monitor_step(StorageMonitor *monitor, bool should_run) {
        if (!should_run || !pod_has_storage_limit(&monitor->pod->pod->spec))
                storage_monitor_stop(monitor);
        else if (!monitor->timer && !monitor->child)
                arm_storage_timer(monitor);
}

void storage_monitor_stop(StorageMonitor *monitor) {
        monitor->timer = sd_event_source_disable_unref(monitor->timer);
        monitor->child = child_free(monitor->child);
}
