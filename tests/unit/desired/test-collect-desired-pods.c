/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/desired/collect-desired-pods.h"

#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>

static char calls[256]; /* names, in the order of the calls */
static char default_namespace[] = "default";
static bool daemonsets_fail, apiserver_fails;

static void record_call(const char *call) {
        size_t length = strlen(calls);

        REQUIRE(length + strlen(call) + 2 < sizeof(calls));
        (void) snprintf(calls + length, sizeof(calls) - length, "%s ", call);
}

static const Pod *named_pod(const char *name) {
        static Pod pods[4];
        static size_t n;
        Pod *pod = &pods[n++ % N_ELEMENTS(pods)];

        *pod = (Pod){ .metadata = { .namespace = default_namespace,
                                    .name = (char *) (uintptr_t) name } };
        return pod;
}

static int add_set_pods(const DesiredDaemonSets *sets, DesiredPods *desired, void *userdata) {
        static const PodSource orphan = { .kind = POD_SOURCE_ORPHAN };
        char text[64];

        for (size_t i = 0; i < sets->n; i++) {
                (void) snprintf(text, sizeof(text), "%s:%s",
                                pod_source_format(&sets->items[i].source),
                                sets->items[i].set->metadata.name);
                record_call(text);
        }
        record_call("daemonset-pods");
        if (desired_pods_add(desired, &orphan, named_pod("web-n")) != 0 ||
            desired_pods_add(desired, &orphan, named_pod("left")) != 1)
                record_call("unexpected");
        return daemonsets_fail ? -ENOMEM : 0;
}

static int add_api_sets(DesiredDaemonSets *sets, void *userdata) {
        static const PodSource source = { .kind = POD_SOURCE_APISERVER_DAEMONSET };
        static char name[] = "logd";
        static const DaemonSet set = { .metadata.name = name };

        record_call("api-daemonsets");
        return desired_daemonsets_add(sets, &source, &set);
}

static int add_api_pods(DesiredPods *desired, void *userdata) {
        static const PodSource source = { .kind = POD_SOURCE_APISERVER };

        record_call("api-pods");
        if (desired_pods_add(desired, &source, named_pod("left")) != 0 ||
            desired_pods_add(desired, &source, named_pod("api")) != 1)
                record_call("unexpected");
        return apiserver_fails ? -ENOMEM : 0;
}

static void on_changed(void *userdata) {
}

/* Returns "name source, …" of all desired pods. */
static char *collect(bool has_api, bool *ret_is_incomplete) {
        const DaemonSetPodSource daemonsets = { .add_pods = add_set_pods };
        const ApiServerPodSource apiserver = { .add_daemonsets = add_api_sets,
                                               .add_pods = add_api_pods },
                                 none = { 0 };
        cleanup_with(sd_event_unrefp) sd_event *event = NULL;
        cleanup_with(manifest_directory_freep) ManifestDirectory *manifests = NULL;
        cleanup_with(desired_pods_done) DesiredPods desired = { 0 };
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out && sd_event_new(&event) >= 0);
        REQUIRE(manifest_directory_new(event, test_directory(), "n", on_changed, NULL,
                                       &manifests) >= 0);
        REQUIRE(manifest_directory_start(manifests, NULL) >= 0);
        calls[0] = '\0';
        EXPECT(collect_desired_pods(manifests, &daemonsets, has_api ? &apiserver : &none,
                                    &desired) ==
               (daemonsets_fail || apiserver_fails ? -ENOMEM : 0));
        for (size_t i = 0; i < desired.pods.n; i++)
                fprintf(out, "%s%s %s", i > 0 ? ", " : "", desired.pods.items[i].pod->metadata.name,
                        pod_source_format(&desired.pods.items[i].source));
        REQUIRE(fclose(out) == 0);
        *ret_is_incomplete = desired.is_incomplete;
        return text;
}

static void write_manifests(void) {
        static const char text[] =
                "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n"
                "spec:\n  containers: [{name: c, image: a}]\n---\n"
                "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: set}\n"
                "spec:\n  selector: {matchLabels: {a: b}}\n"
                "  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: "
                "a}]}}\n";
        cleanup_free char *path = path_join(test_directory(), "web.yaml");
        cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        REQUIRE(fd >= 0 && write_all(fd, text, strlen(text)) >= 0);
}

TEST(files_come_first_then_daemonsets_and_orphans_then_the_api_server)
{
        cleanup_free char *text = NULL;
        bool is_incomplete;

        write_manifests();
        text = collect(true, &is_incomplete);
        EXPECT_STREQ(calls,
                     "api-daemonsets web.yaml:set [API server]:logd daemonset-pods api-pods ");
        EXPECT_STREQ(text, "api the API server, left (no file), web-n web.yaml");
        EXPECT(!is_incomplete);
}

TEST(without_an_api_server_there_are_files_and_daemonsets)
{
        cleanup_free char *text = NULL;
        bool is_incomplete;

        write_manifests();
        text = collect(false, &is_incomplete);
        EXPECT_STREQ(calls, "web.yaml:set daemonset-pods ");
        EXPECT_STREQ(text, "left (no file), web-n web.yaml");
        EXPECT(!is_incomplete);
}

TEST(a_failing_source_makes_the_set_incomplete_without_affecting_the_others)
{
        cleanup_free char *text = NULL, *second = NULL;
        bool is_incomplete;

        write_manifests();
        daemonsets_fail = true;
        text = collect(true, &is_incomplete);
        EXPECT(is_incomplete);
        EXPECT(strstr(calls, "api-pods"));
        daemonsets_fail = false;
        apiserver_fails = true;
        second = collect(true, &is_incomplete);
        EXPECT(is_incomplete);
        apiserver_fails = false;
}
