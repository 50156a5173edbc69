/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/figures.h"

#include "agent/bundle/groups.h"
#include "agent/publish/usage.h"
#include "common/cleanup.h"
#include "common/file.h"

char *figures_pod_key(const Pod *pod) {
        char *key;

        if (asprintf(&key, "%s/%s/%s", pod->metadata.namespace, pod->metadata.name,
                     pod->metadata.uid) < 0)
                return NULL;
        return key;
}

/* ---- how many ---- */

static void count_container(const ContainerStatus *container, PublishCounts *counts) {
        switch (container->state.kind) {
        case STATE_RUNNING:
                counts->containers_running++;
                break;
        case STATE_TERMINATED:
                counts->containers_exited++;
                break;
        case STATE_WAITING:
        case STATE_NONE:
                counts->containers_created++;
                break;
        }
}

static void count_pods(Supervisor *supervisor, PublishCounts *counts) {
        cleanup_free char *after = NULL;

        for (;;) {
                cleanup_with(pod_status_done) PodStatus status = { 0 };
                const Pod *pod;

                if (supervisor_next(supervisor, after, &pod, &status) <= 0)
                        return;
                counts->pods_running += status.phase == POD_RUNNING;
                for (size_t i = 0; i < status.init_containers.n; i++)
                        count_container(&status.init_containers.items[i], counts);
                for (size_t i = 0; i < status.containers.n; i++)
                        count_container(&status.containers.items[i], counts);
                free(after);
                after = figures_pod_key(pod);
                if (!after)
                        return;
        }
}

static void count_archive(const char *archive, const char *message, void *userdata) {
        PublishCounts *counts = userdata;

        counts->archives_broken++;
}

PublishCounts figures_count(const char *node_name, Supervisor *supervisor,
                            const ManifestSource *sources, ImageStore *images) {
        SupervisorCounts lives = supervisor_counts(supervisor);
        const Manifest *const *manifests;
        size_t n = manifest_source_list(sources, &manifests);
        PublishCounts counts = {
                .node_name = node_name,
                .pods_wanted = lives.pods_wanted,
                .pods = lives.pods,
                .pods_started = lives.pods_started,
                .containers_started = lives.containers_started,
                .containers_restarted = lives.containers_restarted,
                .containers_start_errors = lives.containers_start_errors,
                .manifest_trouble = manifest_source_trouble(sources),
                .evictions = supervisor_eviction_counts(supervisor),
        };

        for (size_t i = 0; i < n; i++) {
                if (!manifests[i]->error)
                        continue;
                counts.manifests_broken++;
                if (!counts.manifest_error)
                        counts.manifest_error = manifests[i]->error;
        }
        image_store_foreach_trouble(images, count_archive, &counts);
        count_pods(supervisor, &counts);
        return counts;
}

/* ---- how much ---- */

static void add_container_usage(Usage *usage, const Pod *pod, const char *pod_group,
                                const ContainerStatus *status) {
        static const char scheme[] = "mainstay://";
        cleanup_free char *group = NULL;
        CgroupUsage used;

        if (status->state.kind != STATE_RUNNING || !status->container_id ||
            strncmp(status->container_id, scheme, strlen(scheme)) != 0)
                return;
        group = group_of_container(pod_group, status->container_id + strlen(scheme));
        if (group && cgroup_usage(group, &used) >= 0)
                usage_add(usage, pod->metadata.namespace, pod->metadata.name, status->name,
                          status->state.started_at, &used);
        else
                usage_add_failure(usage);
}

static void add_pod_usage(const BundleConfig *config, Usage *usage, const Pod *pod,
                          const PodStatus *status) {
        cleanup_free char *group =
                group_of_pod(config, pod_qos_class(&pod->spec), pod->metadata.uid);
        CgroupUsage used;

        if (!group || cgroup_usage(group, &used) < 0)
                return; /* it has none yet, or none any more */
        usage_add(usage, pod->metadata.namespace, pod->metadata.name, NULL, 0, &used);
        for (size_t i = 0; i < status->containers.n; i++)
                add_container_usage(usage, pod, group, &status->containers.items[i]);
        for (size_t i = 0; i < status->init_containers.n; i++)
                add_container_usage(usage, pod, group, &status->init_containers.items[i]);
}

char *figures_usage(Supervisor *supervisor, const BundleConfig *config) {
        cleanup_with(usage_freep) Usage *usage = usage_new();
        cleanup_free char *after = NULL;
        CgroupUsage used;

        if (!usage)
                return NULL;
        if (cgroup_usage("/", &used) >= 0)
                usage_add(usage, NULL, NULL, NULL, 0, &used);
        for (;;) {
                cleanup_with(pod_status_done) PodStatus status = { 0 };
                const Pod *pod;

                if (supervisor_next(supervisor, after, &pod, &status) <= 0)
                        return usage_print(usage);
                add_pod_usage(config, usage, pod, &status);
                free(after);
                after = figures_pod_key(pod);
                if (!after)
                        return NULL;
        }
}
