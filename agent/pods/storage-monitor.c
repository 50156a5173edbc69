/* SPDX-License-Identifier: Apache-2.0 */
/* How much a pod has written is asked for every ten seconds, as the kubelet does, by a child, and
 * only of pods that have a limit, while their containers run: a node without such pods never wakes
 * for this. A pod that has written more than it may has failed. */

#include "agent/pods/ephemeral-storage.h"
#include "agent/pods/pod-worker-private.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strv.h"

#define STORAGE_PERIOD_USEC         (10 * USEC_PER_SEC)
#define STORAGE_EVICTION_GRACE_USEC (1 * USEC_PER_SEC)
#define STORAGE_TIMEOUT_USEC        (120 * USEC_PER_SEC)

enum {
        LINE_MAX_BYTES = 32, /* a number of 64 bits and a newline */
};

static void arm_storage_timer(PodWorker *worker);

static void evict_over_storage_limit(PodWorker *worker, const char *output, size_t n_paths) {
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
        message = storage_limit_message(&worker->pod->spec, bytes, n_paths);
        if (message)
                pod_worker_fail(worker, POD_EVENT_WARNING, "Evicted", message,
                                STORAGE_EVICTION_GRACE_USEC);
}

static void on_storage_measured(const ChildResult *result, void *userdata) {
        PodWorker *worker = userdata;
        cleanup_strv char **paths = NULL;

        worker->storage_child = NULL;
        /* One that could not look is followed by another. */
        if (child_succeeded(result) &&
            pod_storage_paths(worker->context->bundle, worker->pod, &paths) >= 0)
                evict_over_storage_limit(worker, result->output, strv_length(paths));
        pod_worker_mark_dirty(worker);
}

static int measure_pod_storage(PodWorker *worker) {
        const char *shim = worker->context->sandbox->shim_path;
        cleanup_strv char **paths = NULL, **argv = NULL;
        ChildSpec spec = { .timeout_usec = STORAGE_TIMEOUT_USEC };
        int r = pod_storage_paths(worker->context->bundle, worker->pod, &paths);

        if (r >= 0)
                r = strv_append(&argv, shim);
        if (r >= 0)
                r = strv_append(&argv, "usage");
        if (r >= 0)
                r = strv_extend(&argv, paths);
        if (r < 0)
                return r;
        spec.argv = argv;
        spec.output_max = strv_length(paths) * LINE_MAX_BYTES + 1;
        return child_spawn(worker->context->event, &spec, on_storage_measured, worker,
                           &worker->storage_child, NULL);
}

static int on_storage_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        PodWorker *worker = userdata;

        worker->storage_timer = sd_event_source_disable_unref(worker->storage_timer);
        if (measure_pod_storage(worker) < 0)
                arm_storage_timer(worker);
        return 0;
}

static void arm_storage_timer(PodWorker *worker) {
        (void) sd_event_add_time_relative(worker->context->event, &worker->storage_timer,
                                          CLOCK_BOOTTIME, STORAGE_PERIOD_USEC, USEC_PER_SEC,
                                          on_storage_timer, worker);
}

static bool should_monitor_storage(const PodWorker *worker) {
        return worker->is_desired && !pod_worker_has_failed(worker) &&
               pod_worker_sandbox_is_ready(worker) && pod_has_storage_limit(&worker->pod->spec) &&
               pod_worker_has_processes(worker);
}

void pod_worker_monitor_storage(PodWorker *worker) {
        if (!should_monitor_storage(worker))
                pod_worker_stop_storage_monitor(worker);
        else if (!worker->storage_timer && !worker->storage_child)
                arm_storage_timer(worker);
}

void pod_worker_stop_storage_monitor(PodWorker *worker) {
        worker->storage_timer = sd_event_source_disable_unref(worker->storage_timer);
        worker->storage_child = child_free(worker->storage_child);
}
