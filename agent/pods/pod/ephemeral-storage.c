/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/ephemeral-storage.h"

#include "agent/bundle/pod-paths.h"
#include "agent/model/containers.h"
#include "agent/model/quantity.h"
#include "agent/model/resource.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/saturating.h"
#include "common/strv.h"

#include <inttypes.h>
#include <stdarg.h>

static bool is_disk_empty_dir(const Volume *volume) {
        return volume->empty_dir && volume->empty_dir->medium == MEDIUM_UNSET;
}

static const Quantity *ephemeral_storage_limit_of(const Container *container) {
        return &container->resources.limits.ephemeral_storage;
}

/* As in the kubelet, zero is no limit, except for the sum of all containers. */
static bool is_limiting(const Quantity *limit) {
        return quantity_is_set(limit) && limit->value > 0;
}

bool pod_has_storage_limit(const PodSpec *spec) {
        for (size_t i = 0; i < spec->volumes.n; i++)
                if (is_disk_empty_dir(&spec->volumes.items[i]) &&
                    is_limiting(&spec->volumes.items[i].empty_dir->size_limit))
                        return true;
        return resource_sum_of_limits(spec, RESOURCE_EPHEMERAL_STORAGE) >= 0;
}

static int append_path_take(char ***paths, char *path) {
        int r = path ? strv_append(paths, path) : -ENOMEM;

        free(path);
        return r;
}

int pod_storage_paths(const BundleConfig *config, const Pod *pod, char ***ret) {
        cleanup_free char *state_dir = pod_state_dir(config, pod->metadata.uid);
        cleanup_free char *log_dir = pod_log_dir(config, pod);
        cleanup_strv char **paths = NULL;
        int r = state_dir && log_dir ? 0 : -ENOMEM;

        if (r < 0)
                return r;
        for (size_t i = 0; i < pod->spec.volumes.n; i++) {
                if (is_disk_empty_dir(&pod->spec.volumes.items[i]))
                        r = append_path_take(&paths, volume_path(config, pod->metadata.uid,
                                                                 &pod->spec.volumes.items[i]));
                if (r < 0)
                        return r;
        }
        r = append_path_take(&paths, pod_etc_dir(config, pod->metadata.uid));
        if (r < 0)
                return r;
        for (size_t i = 0; i < pod_count_containers(&pod->spec); i++) {
                const char *name = pod_nth_container(&pod->spec, i)->name;

                r = strv_appendf(&paths, "%s/containers/%s", state_dir, name);
                if (r < 0)
                        return r;
                r = append_path_take(&paths, path_join(log_dir, name));
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(paths);
        return 0;
}

static char *format_storage_message(const char *format, ...) printf_like(1, 2);
static char *format_storage_message(const char *format, ...) {
        char *text;
        va_list ap;

        va_start(ap, format);
        text = format_message(format, ap);
        va_end(ap);
        return text;
}

static bool exceeds_quantity(uint64_t bytes, const Quantity *limit) {
        return is_limiting(limit) && bytes > (uint64_t) limit->value;
}

static char *format_volume_message(const Volume *volume, uint64_t bytes) {
        const char *limit = volume->empty_dir->size_limit.text;

        if (bytes == DISK_USAGE_UNKNOWN)
                return format_storage_message(
                        "Usage of EmptyDir volume \"%s\" with the limit \"%s\" cannot be measured: "
                        "directories are nested too deeply.",
                        volume->name, limit);
        return format_storage_message("Usage of EmptyDir volume \"%s\" exceeds the limit \"%s\".",
                                      volume->name, limit);
}

static char *check_total_storage(const PodSpec *spec, uint64_t total) {
        int64_t limit = resource_sum_of_limits(spec, RESOURCE_EPHEMERAL_STORAGE);
        char text[QUANTITY_SIZE];

        if (limit < 0 || total <= (uint64_t) limit)
                return NULL;
        if (total == DISK_USAGE_UNKNOWN)
                return format_storage_message(
                        "Pod ephemeral local storage usage, with the total limit of containers %s, "
                        "cannot be measured: directories are nested too deeply.",
                        quantity_print_bytes(text, limit));
        return format_storage_message(
                "Pod ephemeral local storage usage exceeds the total limit of containers %s.",
                quantity_print_bytes(text, limit));
}

char *find_exceeded_storage_limit(const PodSpec *spec, const uint64_t *bytes, size_t n) {
        uint64_t total = 0;
        size_t at = 0;
        char *text;

        for (size_t i = 0; i < n; i++)
                total = add_saturating(total, bytes[i]);
        for (size_t i = 0; i < spec->volumes.n && at < n; i++) {
                const Volume *volume = &spec->volumes.items[i];

                if (is_disk_empty_dir(volume) &&
                    exceeds_quantity(bytes[at++], &volume->empty_dir->size_limit))
                        return format_volume_message(volume, bytes[at - 1]);
        }
        text = check_total_storage(spec, total);
        if (text)
                return text;
        at++; /* files in /etc belong to the pod, not to a container */
        for (size_t i = 0; i < pod_count_containers(spec) && at + 1 < n; i++, at += 2) {
                const Container *container = pod_nth_container(spec, i);

                if (exceeds_quantity(add_saturating(bytes[at], bytes[at + 1]),
                                     ephemeral_storage_limit_of(container)))
                        return format_storage_message(
                                "Container %s exceeded its local ephemeral storage limit "
                                "\"%s\".",
                                container->name, ephemeral_storage_limit_of(container)->text);
        }
        return NULL;
}
