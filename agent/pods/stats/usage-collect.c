/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/stats/usage-collect.h"

#include "agent/bundle/cgroups.h"
#include "agent/bundle/csi-volumes.h"
#include "agent/model/containers.h"
#include "agent/pods/pod/ephemeral-storage.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/saturating.h"
#include "common/strv.h"

#include <sys/statvfs.h>

/* One walk. */
typedef struct UsageWalk {
        PodManager *pods;
        const BundleConfig *config;
        const UsageVisitor *visitor;
        FilesystemUsage state, logs; /* the file systems of the two directories */
} UsageWalk;

void read_filesystem_usage(const char *directory, FilesystemUsage *ret) {
        struct statvfs st;

        if (statvfs(directory, &st) < 0)
                return;
        *ret = (FilesystemUsage){ .capacity = st.f_blocks * st.f_frsize,
                                  .available = st.f_bavail * st.f_frsize,
                                  .used = (st.f_blocks - st.f_bfree) * st.f_frsize,
                                  .inodes = st.f_files,
                                  .inodes_free = st.f_ffree };
}

static void report_storage(const UsageWalk *walk, StorageKind kind, const char *name,
                           const char *path, StorageSample *total) {
        StorageSample sample = { .kind = kind, .name = name, .taken_at = now_realtime_usec() };

        if (storage_usage_find(walk->visitor->storage, path, &sample)) {
                total->is_measured = true;
                total->taken_at = sample.taken_at;
                total->used = add_saturating(total->used, sample.used);
                total->inodes_used = add_saturating(total->inodes_used, sample.inodes_used);
        }
        if (kind != STORAGE_EPHEMERAL)
                walk->visitor->on_storage(&sample,
                                          kind == STORAGE_LOGS ? &walk->logs : &walk->state,
                                          walk->visitor->userdata);
}

bool read_csi_usage(CsiManager *csi, const BundleConfig *config, const Pod *pod,
                    const Volume *volume, StorageSample *ret, FilesystemUsage *ret_filesystem,
                    char **ret_claim) {
        cleanup_with(csi_volume_done) CsiVolume found = { 0 };
        const CsiVolumeStats *stats = NULL;

        if (csi && find_csi_volume(config, pod, volume, &found, NULL) > 0)
                stats = csi_manager_stats(csi, pod->metadata.uid, found.name);
        if (!stats)
                return false;
        *ret_claim = volume->csi ? NULL : volume_claim_name(pod, volume);
        *ret = (StorageSample){ .kind = STORAGE_VOLUME,
                                .name = volume->name,
                                .claim = *ret_claim,
                                .claim_namespace = pod->metadata.namespace,
                                .has_health = stats->has_condition,
                                .is_abnormal = stats->is_abnormal,
                                .is_measured = true,
                                .used = stats->bytes_used,
                                .inodes_used = stats->inodes_used,
                                .taken_at = stats->taken_at };
        *ret_filesystem = (FilesystemUsage){ .capacity = stats->bytes,
                                             .available = stats->bytes_available,
                                             .used = stats->bytes_used,
                                             .inodes = stats->inodes,
                                             .inodes_free = stats->inodes_available };
        return true;
}

static void report_csi_storage(const UsageWalk *walk, const Pod *pod) {
        for (size_t i = 0; i < pod->spec.volumes.n; i++) {
                cleanup_free char *claim = NULL;
                FilesystemUsage filesystem;
                StorageSample sample;

                if (read_csi_usage(walk->visitor->csi, walk->config, pod,
                                   &pod->spec.volumes.items[i], &sample, &filesystem, &claim))
                        walk->visitor->on_storage(&sample, &filesystem, walk->visitor->userdata);
        }
}

/* 'paths' are those of pod_storage_paths(): volumes, files of /etc, then two for each container. */
static void report_pod_storage(const UsageWalk *walk, const Pod *pod, char *const *paths) {
        size_t n = strv_length(paths), n_containers = pod_count_containers(&pod->spec), at = 0;
        StorageSample total = { .kind = STORAGE_EPHEMERAL, .taken_at = now_realtime_usec() };

        if (n < 2 * n_containers + 1)
                return;
        for (size_t i = 0; i < pod->spec.volumes.n && at < n - 2 * n_containers - 1; i++) {
                const Volume *volume = &pod->spec.volumes.items[i];

                if (volume->empty_dir && volume->empty_dir->medium == MEDIUM_UNSET)
                        report_storage(walk, STORAGE_VOLUME, volume->name, paths[at++], &total);
        }
        for (at = n - 2 * n_containers - 1; at < n; at++)
                report_storage(walk, STORAGE_EPHEMERAL, NULL, paths[at], &total);
        walk->visitor->on_storage(&total, &walk->state, walk->visitor->userdata);
}

static void report_container_storage(const UsageWalk *walk, const Pod *pod, const char *name,
                                     char *const *paths) {
        size_t n = strv_length(paths), n_containers = pod_count_containers(&pod->spec);
        StorageSample ignored = { 0 };

        for (size_t i = 0; i < n_containers && n >= 2 * n_containers; i++) {
                char *const *own = paths + (n - 2 * (n_containers - i));

                if (!streq(pod_nth_container(&pod->spec, i)->name, name))
                        continue;
                report_storage(walk, STORAGE_ROOTFS, NULL, own[0], &ignored);
                report_storage(walk, STORAGE_LOGS, NULL, own[1], &ignored);
        }
}

/* The data of a cgroup for a visitor. 0; -errno if the cgroup is gone. */
static int read_sample(const UsageWalk *walk, UsageSample *sample) {
        if (walk->visitor->has_details)
                cgroup_details(sample->cgroup, &sample->details);
        return cgroup_statistics(sample->cgroup, &sample->statistics);
}

static void report_container_usage(const UsageWalk *walk, const UsageSample *pod_sample,
                                   const Pod *pod, const ContainerStatus *status,
                                   char *const *paths) {
        static const char scheme[] = "mainstay://";
        cleanup_free char *group = NULL;
        UsageSample sample = *pod_sample;

        if (status->state.kind != STATE_RUNNING || !status->container_id ||
            strncmp(status->container_id, scheme, strlen(scheme)) != 0)
                return;
        sample.container = status->name;
        sample.container_id = status->container_id + strlen(scheme);
        sample.image = status->image;
        sample.started_at = status->state.started_at;
        sample.n_interfaces = 0;
        group = cgroup_of_container(pod_sample->cgroup, sample.container_id);
        sample.cgroup = group;
        if (!group || read_sample(walk, &sample) < 0)
                return;
        if (walk->visitor->has_details)
                sample.processes = pod_manager_container_usage(
                        walk->pods, sample.uid, sample.container_id, &sample.processes_at);
        walk->visitor->on_usage(&sample, walk->visitor->userdata);
        if (walk->visitor->on_storage)
                report_container_storage(walk, pod, status->name, paths);
}

static void report_container_usages(const UsageWalk *walk, const UsageSample *pod_sample,
                                    const Pod *pod, const ContainerStatusList *list,
                                    char *const *paths) {
        for (size_t i = 0; i < list->n; i++)
                report_container_usage(walk, pod_sample, pod, &list->items[i], paths);
}

static int report_pod_usage(const Pod *pod, const PodStatus *status, void *userdata) {
        const UsageWalk *walk = userdata;
        const UsageVisitor *visitor = walk->visitor;
        NetworkInterfaceUsage interfaces[NETWORK_INTERFACES_MAX];
        cleanup_strv char **paths = NULL;
        cleanup_free char *group =
                cgroup_of_pod(walk->config, pod_qos_class(&pod->spec), pod->metadata.uid);
        UsageSample sample = { .namespace = pod->metadata.namespace,
                               .pod = pod->metadata.name,
                               .uid = pod->metadata.uid,
                               .cgroup = group,
                               .started_at = status->start_time };
        int n = visitor->has_network ? pod_manager_network_usage(walk->pods, sample.uid, interfaces)
                                     : 0;

        if (!group || (visitor->on_storage && pod_storage_paths(walk->config, pod, &paths) < 0))
                return -ENOMEM;
        if (read_sample(walk, &sample) < 0)
                return 0; /* it has no sandbox yet, or no longer */
        sample.interfaces = interfaces;
        sample.n_interfaces = (size_t) MAX(n, 0);
        visitor->on_usage(&sample, visitor->userdata);
        if (visitor->on_storage) {
                report_pod_storage(walk, pod, paths);
                report_csi_storage(walk, pod);
        }
        report_container_usages(walk, &sample, pod, &status->init_containers, paths);
        report_container_usages(walk, &sample, pod, &status->containers, paths);
        report_container_usages(walk, &sample, pod, &status->ephemeral_containers, paths);
        return 0;
}

static void report_node_usage(const UsageWalk *walk) {
        NetworkInterfaceUsage interfaces[NETWORK_INTERFACES_MAX];
        UsageSample sample = { .cgroup = "/",
                               .started_at = now_realtime_usec() - now_boottime_usec(),
                               .interfaces = interfaces };
        int n = walk->visitor->has_network ? network_usage(0, interfaces) : 0;

        sample.n_interfaces = (size_t) MAX(n, 0);
        if (read_sample(walk, &sample) < 0)
                return;
        sample.statistics.memory_limit = (uint64_t) MAX(walk->config->memory_capacity, 0);
        walk->visitor->on_usage(&sample, walk->visitor->userdata);
}

/* Pods are limited to the resources that are not reserved; without a reservation, to the machine's
 * resources. */
static void report_system_usages(const UsageWalk *walk) {
        const SystemContainers *system = walk->visitor->system;

        for (size_t i = 0; i < system->n; i++) {
                const SystemContainer *container = &system->items[i];
                UsageSample sample = { .system = container->name,
                                       .cgroup = container->cgroup,
                                       .started_at = container->started_at };

                if ((container->is_qos_class && !walk->visitor->has_details) ||
                    read_sample(walk, &sample) < 0)
                        continue;
                if (streq(container->name, "pods") && sample.statistics.memory_limit == 0)
                        sample.statistics.memory_limit =
                                (uint64_t) MAX(walk->config->memory_capacity, 0);
                walk->visitor->on_usage(&sample, walk->visitor->userdata);
        }
}

int collect_usage(PodManager *pods, const BundleConfig *config, const UsageVisitor *visitor) {
        UsageWalk walk = { .pods = pods, .config = config, .visitor = visitor };

        if (visitor->on_storage) {
                read_filesystem_usage(config->state_dir, &walk.state);
                read_filesystem_usage(config->log_dir, &walk.logs);
        }
        report_node_usage(&walk);
        report_system_usages(&walk);
        return pod_manager_for_each_pod(pods, report_pod_usage, &walk);
}
