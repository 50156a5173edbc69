/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the sources: files (static pods), DaemonSets and orphans, the API server. */

#include "agent/desired/collect-desired-pods.h"

#include "common/cleanup.h"

static int add_manifest_pods(const Manifest *manifest, DesiredPods *desired) {
        const PodSource source = pod_source_of_file(manifest->file);

        for (size_t i = 0; i < manifest->pods.n; i++)
                if (desired_pods_add(desired, &source, manifest->pods.items[i]) < 0)
                        return -ENOMEM;
        return 0;
}

static int add_manifest_daemonsets(const Manifest *manifest, DesiredDaemonSets *sets) {
        const PodSource source = pod_source_of_file(manifest->file);

        for (size_t i = 0; i < manifest->daemonsets.n; i++)
                if (desired_daemonsets_add(sets, &source, manifest->daemonsets.items[i]) < 0)
                        return -ENOMEM;
        return 0;
}

static int add_daemonset_pods(const ManifestDirectory *manifests,
                              const DaemonSetPodSource *daemonsets,
                              const ApiServerPodSource *apiserver, DesiredPods *desired) {
        cleanup_with(desired_daemonsets_done) DesiredDaemonSets sets = { 0 };
        const Manifest *const *list;
        size_t n = manifest_directory_list(manifests, &list);

        for (size_t i = 0; i < n; i++)
                if (add_manifest_daemonsets(list[i], &sets) < 0)
                        return -ENOMEM;
        if (apiserver->add_daemonsets && apiserver->add_daemonsets(&sets, apiserver->userdata) < 0)
                return -ENOMEM;
        return daemonsets->add_pods(&sets, desired, daemonsets->userdata);
}

static int add_all_manifest_pods(const ManifestDirectory *manifests, DesiredPods *desired) {
        const Manifest *const *list;
        size_t n = manifest_directory_list(manifests, &list);

        for (size_t i = 0; i < n; i++)
                if (add_manifest_pods(list[i], desired) < 0)
                        return -ENOMEM;
        return 0;
}

int collect_desired_pods(const ManifestDirectory *manifests, const DaemonSetPodSource *daemonsets,
                         const ApiServerPodSource *apiserver, DesiredPods *desired) {
        int r = add_all_manifest_pods(manifests, desired), q;

        q = add_daemonset_pods(manifests, daemonsets, apiserver, desired);
        r = r < 0 ? r : q;
        q = apiserver->add_pods ? apiserver->add_pods(desired, apiserver->userdata) : 0;
        r = r < 0 ? r : q;
        if (r < 0 || !manifest_directory_is_resolved(manifests))
                desired->is_incomplete = true;
        return MIN(r, 0);
}
