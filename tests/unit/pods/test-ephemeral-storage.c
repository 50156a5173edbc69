/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/manifest/manifest.h"
#include "agent/pods/pod/ephemeral-storage.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "tests/test.h"

static const BundleConfig config = {
        .run_dir = "/run/mainstay",
        .state_dir = "/state",
        .log_dir = "/log",
};

static ManifestObjects parse_pod_spec(const char *spec) {
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        char yaml[2048];
        int r;

        (void) snprintf(yaml, sizeof(yaml),
                        "{apiVersion: v1, kind: Pod, metadata: {name: web}, spec: {%s}}", spec);
        r = manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error);
        if (r < 0)
                test_fail(__FILE__, __LINE__, spec, "%s", error_message(&error, r));
        REQUIRE(r >= 0 && objects.pods.n == 1);
        return objects;
}

static const char limited[] =
        "containers: [{name: a, image: i, resources: {limits: {ephemeral-storage: 1Ki}}}, "
        "{name: b, image: i}, "
        "{name: c, image: i, resources: {limits: {ephemeral-storage: 3Ki}}}], "
        "volumes: [{name: free, emptyDir: {}}, {name: small, emptyDir: {sizeLimit: 2Ki}}, "
        "{name: memory, emptyDir: {medium: Memory, sizeLimit: 1}}]";

TEST(directories_that_cannot_be_measured_are_reported_as_such)
{
        static const char volume_limit[] =
                "containers: [{name: a, image: i}], "
                "volumes: [{name: v, emptyDir: {sizeLimit: 1Ki}}, {name: w, emptyDir: {}}]";
        static const uint64_t first[] = { DISK_USAGE_UNKNOWN, 0, 0, 0 },
                              second[] = { 0, DISK_USAGE_UNKNOWN, 0, 0 };
        ManifestObjects one = parse_pod_spec(volume_limit), two = parse_pod_spec(limited);
        cleanup_free char *of_volume =
                find_exceeded_storage_limit(&one.pods.items[0]->spec, first, N_ELEMENTS(first));
        cleanup_free char *of_other =
                find_exceeded_storage_limit(&one.pods.items[0]->spec, second, N_ELEMENTS(second));
        cleanup_free char *of_pod = find_exceeded_storage_limit(
                &two.pods.items[0]->spec, (uint64_t[]){ DISK_USAGE_UNKNOWN, 0, 0, 0, 0, 0, 0, 0 },
                8);

        EXPECT_STREQ(of_volume, "Usage of EmptyDir volume \"v\" with the limit \"1Ki\" cannot be "
                                "measured: directories are nested too deeply.");
        EXPECT_STREQ(of_other, NULL);
        EXPECT_STREQ(of_pod,
                     "Pod ephemeral local storage usage, with the total limit of containers "
                     "4Ki, cannot be measured: directories are nested too deeply.");
        manifest_objects_done(&one);
        manifest_objects_done(&two);
}

TEST(only_pods_with_an_ephemeral_storage_limit_are_measured)
{
        static const struct {
                const char *spec;
                bool is_limited;
        } cases[] = {
                { "containers: [{name: a, image: i}]", false },
                { "containers: [{name: a, image: i}], volumes: [{name: v, emptyDir: {}}]", false },
                { "containers: [{name: a, image: i}], "
                  "volumes: [{name: v, emptyDir: {medium: Memory, sizeLimit: 1Mi}}]",
                  false },
                { "containers: [{name: a, image: i}], volumes: [{name: v, emptyDir: {sizeLimit: "
                  "1}}]",
                  true },
                { "containers: [{name: a, image: i}], volumes: [{name: v, emptyDir: {sizeLimit: "
                  "0}}]",
                  false },
                { limited, true },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                ManifestObjects objects = parse_pod_spec(cases[i].spec);

                EXPECT_EQ(pod_has_storage_limit(&objects.pods.items[0]->spec), cases[i].is_limited);
                manifest_objects_done(&objects);
        }
}

TEST(storage_paths_list_volumes_etc_files_then_layers_and_logs)
{
        ManifestObjects objects = parse_pod_spec(limited);
        Pod *pod = objects.pods.items[0];
        cleanup_strv char **paths = NULL;
        cleanup_free char *first = NULL;

        REQUIRE(pod_storage_paths(&config, pod, &paths) == 0);
        EXPECT_EQ(strv_length(paths), 9);
        REQUIRE(asprintf(&first, "/state/pods/%s/volumes/kubernetes.io~empty-dir/free",
                         pod->metadata.uid) > 0);
        EXPECT_STREQ(paths[0], first);
        EXPECT(strncmp(paths[2], "/state/pods/", strlen("/state/pods/")) == 0);
        EXPECT_STREQ(strrchr(paths[2], '/'), "/etc");
        EXPECT(strstr(paths[3], "/containers/a") != NULL);
        EXPECT(strncmp(paths[4], "/log/pods/", strlen("/log/pods/")) == 0);
        manifest_objects_done(&objects);
}

TEST(the_first_exceeded_limit_has_the_kubelets_message)
{
        static const struct {
                uint64_t bytes[9]; /* free, small, /etc, a, its log, b, its log, c, its log */
                const char *verdict;
        } cases[] = {
                { { 0 }, NULL },
                { { 0, 2048, 0, 512, 512 }, NULL },
                { { 4096 }, NULL },
                { { 0, 2049 }, "Usage of EmptyDir volume \"small\" exceeds the limit \"2Ki\"." },
                { { 4097 },
                  "Pod ephemeral local storage usage exceeds the total limit of containers 4Ki." },
                { { 0, 0, 0, 0, 0, 5000 },
                  "Pod ephemeral local storage usage exceeds the total limit of containers 4Ki." },
                { { 0, 0, 4096 }, NULL },
                { { 0, 0, 4097 },
                  "Pod ephemeral local storage usage exceeds the total limit of containers 4Ki." },
                { { 0, 0, 0, 1000, 25 },
                  "Container a exceeded its local ephemeral storage limit \"1Ki\"." },
                { { 0, 0, 0, 0, 0, 0, 0, 3072, 1 },
                  "Container c exceeded its local ephemeral storage limit \"3Ki\"." },
                { { 0, UINT64_MAX - 1, UINT64_MAX - 1 },
                  "Usage of EmptyDir volume \"small\" exceeds the limit \"2Ki\"." },
        };
        ManifestObjects objects = parse_pod_spec(limited);

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *verdict = find_exceeded_storage_limit(
                        &objects.pods.items[0]->spec, cases[i].bytes, 9);

                EXPECT_STREQ(verdict, cases[i].verdict);
        }
        manifest_objects_done(&objects);
}

TEST(a_limit_of_zero_limits_neither_a_volume_nor_a_container)
{
        static const char spec[] =
                "containers: [{name: a, image: i, resources: {limits: {ephemeral-storage: 0}}}, "
                "{name: b, image: i, resources: {limits: {ephemeral-storage: 4Ki}}}], "
                "volumes: [{name: v, emptyDir: {sizeLimit: \"0\"}}]";
        static const uint64_t bytes[] = { 1024, 0, 1024, 1024, 0, 0 };
        ManifestObjects objects = parse_pod_spec(spec);
        cleanup_free char *verdict =
                find_exceeded_storage_limit(&objects.pods.items[0]->spec, bytes, N_ELEMENTS(bytes));

        EXPECT_STREQ(verdict, NULL);
        manifest_objects_done(&objects);
}
