/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/storage-usage.h"

#include "agent/pods/ephemeral-storage.h"
#include "common/child.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strv.h"

#define MEASURE_PERIOD_USEC (60 * USEC_PER_SEC)
#define MEASURE_LIMIT_USEC  (120 * USEC_PER_SEC)

enum {
        NUMBER_LINE_SIZE = 32, /* a number of 64 bits and a newline */
        MEASURED_PATHS_MAX = 4096,
};

struct StorageUsage {
        sd_event *event;
        const BundleConfig *bundle;
        const char *shim_path;
        Child *child;
        char **asked_paths; /* of the child */
        uint64_t asked_at;  /* boot time; 0: never */
        char **paths;
        uint64_t *bytes;
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

StorageUsage *storage_usage_free(StorageUsage *usage) {
        if (!usage)
                return NULL;
        child_free(usage->child);
        strv_free(usage->asked_paths);
        strv_free(usage->paths);
        free(usage->bytes);
        free(usage);
        return NULL;
}

static uint64_t *parse_measured_bytes(const char *output, size_t n) {
        cleanup_free uint64_t *bytes = calloc(n + 1, sizeof(*bytes));
        char *end;

        for (size_t i = 0; bytes && i < n; i++) {
                bytes[i] = strtoull(output, &end, 10);
                if (end == output || *end != '\n')
                        return NULL;
                output = end + 1;
        }
        return TAKE_PTR(bytes);
}

static void on_storage_usage_measured(const ChildResult *result, void *userdata) {
        StorageUsage *usage = userdata;
        uint64_t *bytes =
                child_succeeded(result)
                        ? parse_measured_bytes(result->output, strv_length(usage->asked_paths))
                        : NULL;

        usage->child = NULL;
        if (!bytes)
                return;
        free(usage->bytes);
        usage->bytes = bytes;
        strv_free(usage->paths);
        usage->paths = TAKE_PTR(usage->asked_paths);
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
        r = strv_extend(&argv, usage->asked_paths);
        if (r < 0)
                return r;
        return child_spawn(
                usage->event,
                &(ChildSpec){ .argv = argv,
                              .output_max = strv_length(usage->asked_paths) * NUMBER_LINE_SIZE + 1,
                              .timeout_usec = MEASURE_LIMIT_USEC },
                on_storage_usage_measured, usage, &usage->child, NULL);
}

void storage_usage_refresh(StorageUsage *usage, PodManager *pods) {
        uint64_t now = now_boottime_usec();

        if (usage->child || (usage->asked_at > 0 && now - usage->asked_at < MEASURE_PERIOD_USEC))
                return;
        usage->asked_at = now;
        (void) start_measuring(usage, pods); /* or a minute later */
}

bool storage_usage_find(const StorageUsage *usage, const char *path, uint64_t *ret_bytes,
                        uint64_t *ret_taken_at) {
        for (size_t i = 0; usage->paths && usage->paths[i]; i++)
                if (streq(usage->paths[i], path) && usage->bytes[i] != DISK_USAGE_UNKNOWN) {
                        *ret_bytes = usage->bytes[i];
                        *ret_taken_at = usage->taken_at;
                        return true;
                }
        return false;
}
