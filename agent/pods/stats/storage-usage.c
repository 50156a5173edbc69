/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/stats/storage-usage.h"

#include "agent/pods/pod/ephemeral-storage.h"
#include "common/child.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strv.h"

#define MEASURE_PERIOD_USEC (60 * USEC_PER_SEC)
#define MEASURE_LIMIT_USEC  (120 * USEC_PER_SEC)

/* A pod whose files cannot be counted in its share of this time is not measured; the other pods
 * are. */
#define MEASURE_WALK_OPTION "--seconds=60"

enum {
        USAGE_LINE_SIZE = 64, /* two 64-bit numbers, a space and a newline */
        MEASURED_PATHS_MAX = 4096,
};

typedef struct MeasuredPath {
        char *path;
        uint64_t bytes, inodes;
} MeasuredPath;

struct StorageUsage {
        sd_event *event;
        const BundleConfig *bundle;
        const char *shim_path;
        Child *child;
        char **asked_paths;     /* paths of the child */
        uint64_t asked_at;      /* boot time; 0: never */
        MeasuredPath *measured; /* by path */
        size_t n_measured;
        uint64_t taken_at; /* realtime */
};

int storage_usage_new(sd_event *event, const BundleConfig *bundle, const char *shim_path,
                      StorageUsage **ret) {
        StorageUsage *usage = calloc(1, sizeof(*usage));

        if (!usage)
                return -ENOMEM;
        usage->event = event;
        usage->bundle = bundle;
        usage->shim_path = shim_path;
        *ret = usage;
        return 0;
}

static void measured_paths_free(MeasuredPath *measured, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(measured[i].path);
        free(measured);
}

StorageUsage *storage_usage_free(StorageUsage *usage) {
        if (!usage)
                return NULL;
        child_free(usage->child);
        strv_free(usage->asked_paths);
        measured_paths_free(usage->measured, usage->n_measured);
        free(usage);
        return NULL;
}

static int compare_measured_paths(const void *a, const void *b) {
        return strcmp(((const MeasuredPath *) a)->path, ((const MeasuredPath *) b)->path);
}

/* Reads a number and the byte after it. */
static bool parse_measured_number(const char **output, char end_byte, uint64_t *ret) {
        char *end;

        *ret = strtoull(*output, &end, 10);
        if (end == *output || *end != end_byte)
                return false;
        *output = end + 1;
        return true;
}

/* The output has a line for each path, in the same order. Takes over the paths; NULL: the output is
 * invalid, and they are not taken over. */
static MeasuredPath *parse_measured_paths(const char *output, char **paths, size_t n) {
        cleanup_free MeasuredPath *measured = calloc(n + 1, sizeof(*measured));

        for (size_t i = 0; measured && i < n; i++)
                if (!parse_measured_number(&output, ' ', &measured[i].bytes) ||
                    !parse_measured_number(&output, '\n', &measured[i].inodes))
                        return NULL;
        for (size_t i = 0; measured && i < n; i++)
                measured[i].path = TAKE_PTR(paths[i]);
        if (measured)
                qsort(measured, n, sizeof(*measured), compare_measured_paths);
        return TAKE_PTR(measured);
}

static void on_storage_usage_measured(const ChildResult *result, void *userdata) {
        StorageUsage *usage = userdata;
        size_t n = strv_length(usage->asked_paths);
        MeasuredPath *measured =
                child_succeeded(result)
                        ? parse_measured_paths(result->output, usage->asked_paths, n)
                        : NULL;

        usage->child = NULL;
        if (!measured)
                return;
        measured_paths_free(usage->measured, usage->n_measured);
        usage->measured = measured;
        usage->n_measured = n;
        usage->taken_at = now_realtime_usec();
}

static int add_pod_storage_paths(const Pod *pod, const PodStatus *status, void *userdata) {
        StorageUsage *usage = userdata;
        cleanup_strv char **paths = NULL;
        int r = pod_storage_paths(usage->bundle, pod, &paths);

        if (r < 0)
                return r;
        return strv_length(usage->asked_paths) < MEASURED_PATHS_MAX
                       ? strv_extend(&usage->asked_paths, paths)
                       : 0;
}

static int start_measuring(StorageUsage *usage, PodManager *pods) {
        cleanup_strv char **argv = NULL;
        int r;

        usage->asked_paths = strv_free(usage->asked_paths);
        r = pod_manager_for_each_pod(pods, add_pod_storage_paths, usage);
        if (r < 0 || !usage->asked_paths)
                return r;
        r = strv_append(&argv, usage->shim_path);
        if (r < 0)
                return r;
        r = strv_append(&argv, "usage");
        if (r < 0)
                return r;
        r = strv_append(&argv, MEASURE_WALK_OPTION);
        if (r < 0)
                return r;
        r = strv_append(&argv, "--bytes-and-inodes");
        if (r < 0)
                return r;
        r = strv_extend(&argv, usage->asked_paths);
        if (r < 0)
                return r;
        return child_spawn(
                usage->event,
                &(ChildSpec){ .argv = argv,
                              .output_max = strv_length(usage->asked_paths) * USAGE_LINE_SIZE + 1,
                              .timeout_usec = MEASURE_LIMIT_USEC },
                on_storage_usage_measured, usage, &usage->child, NULL);
}

void storage_usage_refresh(StorageUsage *usage, PodManager *pods) {
        uint64_t now = now_boottime_usec();

        if (usage->child || (usage->asked_at > 0 && now - usage->asked_at < MEASURE_PERIOD_USEC))
                return;
        usage->asked_at = now;
        (void) start_measuring(usage, pods); /* if this fails, it is retried a minute later */
}

bool storage_usage_find(const StorageUsage *usage, const char *path, StorageSample *sample) {
        const MeasuredPath key = { .path = (char *) (uintptr_t) path };
        const MeasuredPath *found = usage->n_measured > 0
                                            ? bsearch(&key, usage->measured, usage->n_measured,
                                                      sizeof(key), compare_measured_paths)
                                            : NULL;

        if (!found || found->bytes == DISK_USAGE_UNKNOWN)
                return false;
        sample->is_measured = true;
        sample->used = found->bytes;
        sample->inodes_used = found->inodes;
        sample->taken_at = usage->taken_at;
        return true;
}
