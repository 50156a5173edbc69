/* SPDX-License-Identifier: Apache-2.0 */
/* How much a pod has written is asked for every ten seconds, as the kubelet does, by a child, and
 * only of pods that have a limit, while their containers run: a node without such pods never wakes
 * for this. A pod that has written more than it may has failed. */

#include "agent/supervise/pod-internal.h"
#include "agent/supervise/storage.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strv.h"

#define LOOK_USEC       (10 * USEC_PER_SEC)
#define EVICTION_USEC   (1 * USEC_PER_SEC)
#define LOOK_LIMIT_USEC (120 * USEC_PER_SEC)

enum {
        LINE_MAX_BYTES = 32, /* a number of 64 bits and a newline */
};

static void look_later(PodLife *life);

static void evict(PodLife *life, const char *output, size_t n_paths) {
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
        message = storage_verdict(&life->pod->spec, bytes, n_paths);
        if (message)
                pod_life_fail(life, POD_EVENT_WARNING, "Evicted", message, EVICTION_USEC);
}

static void on_measured(const ChildResult *result, void *userdata) {
        PodLife *life = userdata;
        cleanup_strv char **paths = NULL;

        life->storage_child = NULL;
        /* One that could not look is followed by another. */
        if (child_succeeded(result) && storage_paths(life->context->bundle, life->pod, &paths) >= 0)
                evict(life, result->output, strv_length(paths));
        pod_life_mark(life);
}

static int measure(PodLife *life) {
        const char *shim = life->context->sandbox->shim_path;
        cleanup_strv char **paths = NULL, **argv = NULL;
        ChildSpec spec = { .timeout_usec = LOOK_LIMIT_USEC };
        int r = storage_paths(life->context->bundle, life->pod, &paths);

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
        return child_spawn(life->context->event, &spec, on_measured, life, &life->storage_child,
                           NULL);
}

static int on_look(sd_event_source *source, uint64_t usec, void *userdata) {
        PodLife *life = userdata;

        life->storage_timer = sd_event_source_disable_unref(life->storage_timer);
        if (measure(life) < 0)
                look_later(life);
        return 0;
}

static void look_later(PodLife *life) {
        (void) sd_event_add_time_relative(life->context->event, &life->storage_timer,
                                          CLOCK_BOOTTIME, LOOK_USEC, USEC_PER_SEC, on_look, life);
}

static bool must_be_watched(const PodLife *life) {
        return life->is_wanted && !pod_life_has_failed(life) && pod_life_is_ready(life) &&
               storage_is_limited(&life->pod->spec) && pod_life_has_processes(life);
}

void pod_life_watch_storage(PodLife *life) {
        if (!must_be_watched(life))
                pod_life_forget_storage(life);
        else if (!life->storage_timer && !life->storage_child)
                look_later(life);
}

void pod_life_forget_storage(PodLife *life) {
        life->storage_timer = sd_event_source_disable_unref(life->storage_timer);
        life->storage_child = child_free(life->storage_child);
}
