/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/desired/stop-reason.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>

static const char *daemonset_reason, *apiserver_reason;

static char *explain_daemonset(const PodSource *source, const Pod *pod, void *userdata) {
        return daemonset_reason ? strdup(daemonset_reason) : NULL;
}

static char *explain_apiserver(const PodSource *source, const Pod *pod, void *userdata) {
        return apiserver_reason ? strdup(apiserver_reason) : NULL;
}

static void on_changed(void *userdata) {
}

static void write_manifest(const char *file, const char *text) {
        cleanup_free char *path = path_join(test_directory(), file);
        cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        REQUIRE(fd >= 0 && write_all(fd, text, strlen(text)) >= 0);
}

static ManifestDirectory *scan(void) {
        cleanup_with(sd_event_unrefp) sd_event *event = NULL;
        ManifestDirectory *directory;

        REQUIRE(sd_event_new(&event) >= 0);
        REQUIRE(manifest_directory_new(event, test_directory(), "n", on_changed, NULL,
                                       &directory) >= 0);
        REQUIRE(manifest_directory_start(directory, NULL) >= 0);
        return directory;
}

static void expect_reason(const ManifestDirectory *manifests, bool has_kubeconfig, PodSource source,
                          const char *expected) {
        static const DaemonSetPodSource daemonsets = { .explain_stop = explain_daemonset };
        const ApiServerPodSource apiserver = { .explain_stop =
                                                       has_kubeconfig ? explain_apiserver : NULL };
        const Pod pod = { 0 };
        cleanup_free char *reason =
                find_stop_reason(&daemonsets, &apiserver, manifests, &source, &pod);

        EXPECT_STREQ(strna(reason), strna(expected));
}

TEST(stop_reason_tells_a_removed_file_from_one_that_does_not_contain_the_pod)
{
        cleanup_with(manifest_directory_freep) ManifestDirectory *manifests = NULL;

        write_manifest("web.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
                                   "spec:\n  containers: [{name: c, image: a}]\n");
        write_manifest("broken.yaml", "apiVersion: v1\nkind: [\n");
        manifests = scan();
        daemonset_reason = NULL;
        expect_reason(manifests, false, pod_source_of_file("gone.yaml"), "gone.yaml was removed");
        expect_reason(manifests, false, pod_source_of_file("web.yaml"),
                      "web.yaml no longer contains it");
        /* A broken file keeps its last valid content, which would contain the pod. */
        expect_reason(manifests, false, pod_source_of_file("broken.yaml"),
                      "broken.yaml no longer contains it");
        daemonset_reason = "DaemonSet default/logd was removed";
        expect_reason(manifests, false, pod_source_of_file("web.yaml"), daemonset_reason);
}

TEST(reason_of_the_api_server_precedes_that_of_the_daemonset_controller)
{
        const PodSource api = { .kind = POD_SOURCE_APISERVER };
        const PodSource set = { .kind = POD_SOURCE_APISERVER_DAEMONSET };
        cleanup_with(manifest_directory_freep) ManifestDirectory *manifests = scan();

        daemonset_reason = "DaemonSet default/logd was removed";
        apiserver_reason = NULL;
        expect_reason(manifests, true, api, NULL);
        expect_reason(manifests, true, set, daemonset_reason);
        apiserver_reason = "the API server deleted it";
        expect_reason(manifests, true, api, apiserver_reason);
        expect_reason(manifests, true, set, apiserver_reason);
        expect_reason(manifests, false, api, "there is no kubeconfig");
        expect_reason(manifests, false, set, "there is no kubeconfig");
}

TEST(an_orphan_is_not_stopped_by_a_source)
{
        cleanup_with(manifest_directory_freep) ManifestDirectory *manifests = scan();

        daemonset_reason = "DaemonSet default/logd was removed";
        expect_reason(manifests, true, (PodSource){ .kind = POD_SOURCE_ORPHAN }, NULL);
}
